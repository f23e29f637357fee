#include "server/page.h"

#include <algorithm>
#include <string>

#include "base/strings.h"

namespace transept {
namespace {

// The page connects to its own server alone. Not every browser takes WebSockets for that, so the address by which the
// client came is there by name.
std::string policy_for(const HttpRequest& request) {
  const std::string* host = request.header("Host");
  const bool is_plain = host != nullptr && std::ranges::all_of(*host, [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                 std::string_view(".-_:[]").find(c) != std::string_view::npos;
                        });
  if (!is_plain || host->empty()) return std::string(kPagePolicy);
  return str_cat(kPagePolicy, " ws://", *host, " wss://", *host);
}

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  for (const PageFile& file : page_files()) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

HttpResponse page_response(const PageFile& file, const HttpRequest& request) {
  HttpResponse response{.content_type = std::string(file.content_type)};
  response.headers = {{"ETag", std::string(file.etag)},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", policy_for(request)},
                      {"Referrer-Policy", "no-referrer"},
                      {"Permissions-Policy", "microphone=(self)"}};
  const std::string* known = request.header("If-None-Match");
  if (known != nullptr && known->find(file.etag) != std::string::npos) {
    response.status = 304;
  } else {
    response.body = std::string(file.content);
  }
  return response;
}

}  // namespace transept
