// Any bytes as a multipart form: the first line is the Content-Type, the rest the body. Parts lie in the body, in
// order, within the limits, and hold no delimiter.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/multipart.h"

namespace transept {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void run(std::string_view content_type, std::string_view body) {
  const MultipartLimits limits{.max_parts = 5, .max_part_header_bytes = 200, .max_field_bytes = 50};
  const auto boundary = multipart_boundary(content_type);
  require(boundary.ok() || !boundary.status().message().empty());
  // Without a boundary of its own the body is still worth reading.
  const std::string used = boundary.ok() ? *boundary : "B";
  require(!used.empty() && used.size() <= 70);
  const auto parts = parse_multipart(body, used, limits);
  if (!parts.ok()) {
    require(absl::IsInvalidArgument(parts.status()) || absl::IsResourceExhausted(parts.status()));
    require(!parts.status().message().empty());
    return;
  }
  require(parts->size() <= limits.max_parts);
  const char* end = body.data();
  for (const MultipartPart& part : *parts) {
    require(part.filename.has_value() || part.content.size() <= limits.max_field_bytes);
    require(part.name.size() <= limits.max_part_header_bytes);
    require(part.content.find("\r\n--" + used + "\r\n") == std::string_view::npos);
    require(part.content.data() >= end && part.content.data() + part.content.size() <= body.data() + body.size());
    end = part.content.data() + part.content.size();
  }
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return 0;
  transept::run(text.substr(0, end), text.substr(end + 1));
  return 0;
}
