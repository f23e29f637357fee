// Serves the files of the page at `/` as HTTP. Pure functions: thread-safe.
#pragma once

#include <string_view>

#include "net/http.h"
#include "server/page_files.h"

namespace transept {

// Returns the file of this path, or null if the page has none.
const PageFile* find_page_file(std::string_view path);

// Returns the file with kPagePolicy as Content-Security-Policy, to which it adds WebSockets of the request's Host; or
// 304 if the client has it already (If-None-Match).
HttpResponse page_response(const PageFile& file, const HttpRequest& request);

}  // namespace transept
