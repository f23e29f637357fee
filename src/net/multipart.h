// Parses multipart/form-data (RFC 7578) as clients send it. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

struct MultipartPart {
  std::string name;                     // "file", "timestamp_granularities[]"
  std::optional<std::string> filename;  // a part with a filename is a file, even if that is ""
  std::string content_type;             // "" if the part has none
  std::string_view content;             // a view of the body
};

struct MultipartLimits {
  size_t max_parts = 256;
  size_t max_part_header_bytes = 8 << 10;
  size_t max_field_bytes = 1 << 20;  // of a part without filename
};

// Returns the boundary of a Content-Type. Errors (kInvalidArgument): another type, no or two boundaries, or one that is
// empty, longer than 70 characters, or has other characters than RFC 2046 allows.
StatusOr<std::string> multipart_boundary(std::string_view content_type);

// Returns the parts in order, as views of `body`. Ignores a preamble, an epilogue, unknown headers and filename*. Names
// and filenames may be quoted (with \" and %22, %0D, %0A as browsers write them) or bare. error_param is the field's
// name if it is known. Errors: kInvalidArgument for no closing boundary, a part without a name, a malformed or repeated
// header, bare LF, a transfer encoding other than 7bit, 8bit and binary; kResourceExhausted beyond the limits.
StatusOr<std::vector<MultipartPart>> parse_multipart(std::string_view body, std::string_view boundary,
                                                     const MultipartLimits& limits);

}  // namespace transept
