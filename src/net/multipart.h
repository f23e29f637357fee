// multipart/form-data (RFC 7578) as clients send it. Pure functions: thread-safe.
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
  std::string content_type;             // "" where the part names none
  std::string_view content;             // of the body that was read
};

struct MultipartLimits {
  size_t max_parts = 256;
  size_t max_part_header_bytes = 8 << 10;
  size_t max_field_bytes = 1 << 20;  // of a part without filename
};

// The boundary of a Content-Type, or an error that says what is wrong with it (another type, no boundary, one that is
// empty, longer than 70 characters or of other characters than RFC 2046's).
StatusOr<std::string> multipart_boundary(std::string_view content_type);

// The parts in order; views of `body`. A preamble and an epilogue are passed over, as are headers that are not known.
// Names and filenames may be quoted (with \" and %22, %0D, %0A as browsers write them) or bare; filename* is passed
// over. Errors (kInvalidArgument; the field's name as error_param where it is known): no closing boundary, a part
// without a name, a malformed header, bare LF, a transfer encoding, more than the limits (both numbers;
// kResourceExhausted).
StatusOr<std::vector<MultipartPart>> parse_multipart(std::string_view body, std::string_view boundary,
                                                     const MultipartLimits& limits);

}  // namespace transept
