// Counts the rows that a family's tower makes of a picture, by the tower's sizes in config.json: what requests are
// limited and charged by before the tower runs. MultiModalRegistry owns it. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "core/model_config.h"

namespace transept {

struct ImageRowCounts {
  int32_t num_positions = 0;       // rows of the tower's output, which consumers get
  int32_t num_rows = 0;            // rows of its widest layer
  int32_t num_last_positions = 0;  // EncoderFeatures'
};

class ImageRows {
 public:
  virtual ~ImageRows() = default;

  // shape, extras: those of features (multimodal/image_processor.h): [3, height, width] and none for most, or [patches,
  // values] and a grid. They may come from another process. Errors: kInvalidArgument for a size that the tower does not
  // take, naming both sizes and both files, or extras that do not belong to the shape.
  virtual StatusOr<ImageRowCounts> count(std::span<const int64_t> shape, std::span<const int32_t> extras) const = 0;

  // Checks numbers of features that say where rows stand. REQUIRES: count() takes the shape, and there are as many
  // values. Errors: kInvalidArgument for a place that the tower does not have.
  virtual Status check_places(std::span<const int64_t> /*shape*/, std::span<const float> /*values*/) const {
    return ok_status();
  }
};

// Of the towers of VisionEncoderDecoderModel: ViT and DeiT take one size; DonutSwin takes any. Errors:
// kInvalidArgument naming file and field; kUnimplemented by name for another tower.
StatusOr<std::unique_ptr<ImageRows>> make_composite_image_rows(const ModelConfig& config);
// BLIP's takes pictures of one size. Pix2Struct's takes any number of patches up to seq_len; their shape is [patches, 2
// + pixels], and rows and columns are numbered below seq_len.
StatusOr<std::unique_ptr<ImageRows>> make_blip_image_rows(const ModelConfig& config);
StatusOr<std::unique_ptr<ImageRows>> make_pix2struct_image_rows(const ModelConfig& config);

// Of Florence-2's tower, which takes any size that its tables of positions have rows for (florence2_image_rows.cc).
// Errors: as above.
StatusOr<std::unique_ptr<ImageRows>> make_florence2_image_rows(const ModelConfig& config);

}  // namespace transept
