// The files of the page at /, embedded when the binary was built. Immutable, so thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace transept {

struct PageFile {
  std::string_view path;          // of the URL: "/" for the document, "/page/app.js" for what it loads
  std::string_view content_type;  // with the charset
  std::string_view content;
  std::string_view etag;  // a hash of the content, with the quotes of ETag and If-None-Match
};

// The Content-Security-Policy of every answer with a file, but for connect-src: the page loads only from its own
// server, runs only its own script files, posts no form, and cannot be framed.
inline constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'";

// Returns all files, in the order of their names.
std::span<const PageFile> page_files();

}  // namespace transept
