// The page at `/`, as HTTP. Pure functions: thread-safe.
#pragma once

#include <string_view>

#include "net/http.h"
#include "server/page_files.h"

namespace transept {

// Null: no file of the page.
const PageFile* find_page_file(std::string_view path);

// With a strict Content-Security-Policy; 304 for a client that has it already (If-None-Match).
HttpResponse page_response(const PageFile& file, const HttpRequest& request);

}  // namespace transept
