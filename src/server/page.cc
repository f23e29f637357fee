#include "server/page.h"

#include "base/strings.h"

namespace transept {
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
                      {"Content-Security-Policy", std::string(kPagePolicy)},
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
