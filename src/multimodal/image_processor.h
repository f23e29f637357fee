// Converts a decoded picture to the input of a family's tower, by the class and the switches that
// preprocessor_config.json (or processor_config.json, "image_processor") names. The reference is the PIL backend of
// transformers 5.23: ViTImageProcessorPil, DeiT, CLIP, Blip, Donut, Nougat, Pix2Struct, Mllama, Qwen2VL. Its torchvision
// backend, and Pillow 13, give other pixels (media/resize.h). MultiModalRegistry owns it. Immutable, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "base/isa.h"
#include "base/status.h"
#include "core/encoder_features.h"
#include "core/model_config.h"
#include "media/image_types.h"

namespace transept {

class ImageProcessor {
 public:
  virtual ~ImageProcessor() = default;

  // Returns what the tower takes of one picture: modality, shape, values and extras are filled; num_positions and
  // num_rows are the family's to count.
  //   [3, height, width]            ViT, DeiT, CLIP, BLIP, Donut, Nougat
  //   [patches, 2 + 3 p p]          Pix2Struct: row and column (from 1), then the patch; patches in use only
  //   [tiles, 3, height, width]     Mllama: tiles in use only; extras {aspect ratio id}
  //   [patches, 3 * 2 * p * p]      Qwen2-VL: extras {t, h, w} of the grid, in patches
  // Errors: kInvalidArgument for a picture that the class refuses (an aspect ratio above 200 for Qwen2-VL, for
  // instance); kResourceExhausted without memory.
  virtual StatusOr<std::shared_ptr<const EncoderFeatures>> features(RgbImage image) const = 0;
};

// Makes the processor that the model's folder names. `isa` chooses kernels, never bits. Errors (kInvalidArgument) name
// the file and the field: no preprocessor_config.json, a value out of range or of the wrong type, a key that changes
// pixels and is not known; kUnimplemented by name for a class that is not known.
StatusOr<std::unique_ptr<ImageProcessor>> make_image_processor(const ModelConfig& config, Isa isa);

}  // namespace transept
