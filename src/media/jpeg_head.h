// The head of a JPEG, up to its first scan: what it costs to decode, before libjpeg is asked for anything. Markers are
// walked as Pillow's JpegImagePlugin does. Source: ITU-T T.81, annex B. Pure function: thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace transept {

struct JpegHead {
  int32_t width = 0;
  int32_t height = 0;
  int32_t num_components = 0;
  struct Component {
    int32_t h_samples = 0, v_samples = 0;  // 1 to 4
  };
  std::array<Component, 4> components;
  bool is_progressive = false;
  bool has_many_scans = false;  // whose coefficients are kept until the last is read
  int32_t orientation = 1;
};

// The bytes begin with FF D8 FF. Errors: kInvalidArgument for a head that is cut or contradicts itself; kUnimplemented,
// by name, for what ImageReader::open refuses.
StatusOr<JpegHead> read_jpeg_head(std::span<const uint8_t> bytes);

}  // namespace transept
