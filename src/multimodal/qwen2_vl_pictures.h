// What the files of a Qwen2-VL or Qwen2.5-VL folder say of pictures: preprocessor_config.json, how they become patches;
// config.json, which patches the tower takes. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "core/model_config.h"
#include "multimodal/image_processor_config.h"
#include "multimodal/image_rows.h"

namespace transept {

// Of a Qwen2VL image processor.
struct MergedPatchOptions {
  bool do_resize = true;
  int64_t patch = 14, merge = 2, temporal = 2;
  int64_t min_pixels = 0, max_pixels = 0;  // of the whole picture
  ResizeFilter filter = ResizeFilter::kBicubic;
  PixelOptions pixels = {};

  int64_t factor() const { return patch * merge; }  // sides are multiples of it
  int64_t patch_values() const { return 3 * temporal * patch * patch; }
  // The most patches that a picture may come to.
  int64_t max_patches() const;
};

// The longer side of a picture is at most so many times its shorter one.
inline constexpr int64_t kMaxProportion = 200;

// Errors: those of ImageProcessorConfig; a value out of range, or two that contradict each other.
StatusOr<MergedPatchOptions> read_merged_patches(const ImageProcessorConfig& config);

// Of the tower and the decoder of a Qwen2-VL or Qwen2.5-VL.
struct Qwen2VlPictures {
  int64_t patch = 14, merge = 2, temporal = 2;
  int32_t max_patches = 0;  // of a picture, a multiple of merge * merge

  int64_t patch_values() const { return 3 * temporal * patch * patch; }
  int32_t patches_a_row() const { return static_cast<int32_t>(merge * merge); }
  int32_t max_positions() const { return max_patches / patches_a_row(); }
};

// Reads vision_config, and the limit of preprocessor_config.json (without the file: its class's). A picture of more
// rows than the decoder has positions fits in no prompt. Errors, naming file and field: kInvalidArgument: a value of
// the wrong type or range, patches that the two files do not agree on; kUnimplemented: other channels than three.
StatusOr<Qwen2VlPictures> read_qwen2_vl_pictures(const ModelConfig& config);

// The ids of config.json that mark pictures in a prompt; the class's where the file has none.
struct Qwen2VlTokens {
  int32_t image = 151655, video = 151656;
};

// Errors, naming file and field: an id outside the vocabulary; one for both.
StatusOr<Qwen2VlTokens> read_qwen2_vl_tokens(const ModelConfig& config);

// Counts merged patches. Errors: those of read_qwen2_vl_pictures.
StatusOr<std::unique_ptr<ImageRows>> make_qwen2_vl_image_rows(const ModelConfig& config);

}  // namespace transept
