// What a file is by its first bytes: the formats that are read, and those that are known and refused by name. Never by
// a suffix or a MIME type. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "media/image_types.h"

namespace transept {

// Errors: kInvalidArgument for no bytes and for bytes of no known format; kUnimplemented, with the format's name, for
// those that ImageReader::open names.
StatusOr<ImageFormat> sniff_image(std::span<const uint8_t> bytes);

}  // namespace transept
