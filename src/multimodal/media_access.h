// Which media a request may bring, and how much of them. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "media/image_types.h"

namespace transept {

// Rights of the caller.
struct MediaAccess {
  bool local_paths = false;
  std::string allowed_path = {};  // if not empty: only files below this folder
  // Told how many bytes the images of a prompt take, before they take them, and again when they take fewer: decoded
  // pixels, then features. An error refuses the prompt. Empty: they are not counted.
  std::function<Status(int64_t bytes)> charge = {};
};

// Limits of one item, checked before and during decoding.
struct MediaLimits {
  size_t max_bytes = size_t{1} << 30;  // of a file, by path or base64 (decoded); not of raw samples or pixels
  double max_audio_seconds = 4 * 60 * 60;
  std::optional<int32_t> max_positions;  // of the encoder's input; none: the family's own limit
  bool first_window_alone = false;       // drops the audio beyond one window; else it is an error
  int32_t max_images = 8;                // of a request
  ImageLimits image = {};
  ImageAlpha alpha = ImageAlpha::kWhite;
};

}  // namespace transept
