// Reads sizes of pictures and patches by their names in config.json. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "core/model_config.h"

namespace transept {

struct PictureSize {
  int64_t height = 0, width = 0;
  bool operator==(const PictureSize&) const = default;
};

// Reads the field `key` of `object`, which `reader` is of: a number of both sides, or a list of height and width.
// Absent: `fallback` for both. Errors: kInvalidArgument, naming the file and `key`: anything else, a side outside
// [1, max].
StatusOr<PictureSize> read_picture_size(const Json& object, const ConfigReader& reader, std::string_view key,
                                        int64_t max, int64_t fallback);

}  // namespace transept
