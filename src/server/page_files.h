// The files of the page at /, as they were when the binary was built. Immutable, so thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace transept {

struct PageFile {
  std::string_view path;          // of the URL: "/" for the document, "/page/app.js" for what it loads
  std::string_view content_type;  // with the charset
  std::string_view content;
  std::string_view etag;  // a hash of the content, in the quotes that ETag and If-None-Match have
};

// What every answer with one of them says (Content-Security-Policy): the page loads from its own server and nowhere
// else, runs no script but its files, posts no form, and cannot be framed.
inline constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// All of them, in order of their names.
std::span<const PageFile> page_files();

}  // namespace transept
