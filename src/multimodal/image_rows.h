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
  int32_t num_positions = 0;  // rows of the tower's output, which consumers get
  int32_t num_rows = 0;       // rows of its widest layer
};

class ImageRows {
 public:
  virtual ~ImageRows() = default;

  // shape: that of features (multimodal/image_processor.h), [3, height, width]. Errors: kInvalidArgument for a size
  // that the tower does not take, naming both sizes and both files.
  virtual StatusOr<ImageRowCounts> count(std::span<const int64_t> shape) const = 0;
};

// Of the towers of VisionEncoderDecoderModel: ViT and DeiT take one size; DonutSwin takes any. Errors:
// kInvalidArgument naming file and field; kUnimplemented by name for another tower.
StatusOr<std::unique_ptr<ImageRows>> make_composite_image_rows(const ModelConfig& config);

// Of Florence-2's tower, which takes any size that its tables of positions have rows for (florence2_image_rows.cc).
// Errors: as above.
StatusOr<std::unique_ptr<ImageRows>> make_florence2_image_rows(const ModelConfig& config);

}  // namespace transept
