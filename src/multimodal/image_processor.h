// Converts a decoded picture to the input of a family's tower, by the class and the switches that
// preprocessor_config.json (or processor_config.json, "image_processor") names. The reference is the PIL backend of
// transformers 5.23: ViTImageProcessorPil, DeiT, CLIP, Blip, Donut, Nougat, Pix2Struct, Mllama, Qwen2VL. Its
// torchvision backend, and Pillow 13, give other pixels (media/resize.h). MultiModalRegistry owns it. Immutable, so
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/isa.h"
#include "base/status.h"
#include "core/encoder_features.h"
#include "core/model_config.h"
#include "media/header_text.h"
#include "media/image_types.h"

namespace transept {

// What processors are made with, beside a model's files.
struct ImageProcessorParts {
  Isa isa = Isa::kGeneric;                             // chooses kernels, never bits
  std::shared_ptr<const HeaderFont> header_font = {};  // null: --header-font was not given
};

class ImageProcessor {
 public:
  virtual ~ImageProcessor() = default;

  // Returns what the tower takes of one picture: modality, shape, values, extras and sizes are filled. num_positions
  // and num_rows are the caller's to fill (multimodal/image_rows.h). The picture is dropped as soon as it is resized.
  //   [3, height, width]            ViT, DeiT, CLIP, BLIP, Donut, Nougat
  //   [patches, 2 + 3 p p]          Pix2Struct: row and column (from 1), then the patch; patches in use only
  //   [tiles, 3, height, width]     Mllama: tiles in use only; extras {aspect ratio id}
  //   [patches, 3 * t * p * p]      Qwen2-VL: extras {t, h, w} of the grid, in patches
  // Errors: kInvalidArgument for a picture that the class refuses (proportions above 200 for Qwen2-VL, for instance),
  // or that gives more than kMaxImageValues values, or more than 2^26 pixels on the way; kResourceExhausted without
  // memory.
  StatusOr<std::shared_ptr<EncoderFeatures>> features(RgbImage image) const;

  // The same of a family that reads a picture in several forms: all of them, in order (CogAgent: small and large,
  // [3, side, side] each). features() is the first of them.
  StatusOr<std::vector<std::shared_ptr<EncoderFeatures>>> forms(RgbImage image) const;

  // Whether a question is drawn above each picture (Pix2Struct's is_vqa).
  virtual bool draws_header() const { return false; }
  // The same of the picture below its question; sizes are those of the picture as it was given. `charge` is told how
  // many bytes pictures take, before they take them; empty: they are not counted. Errors: those of features(), of
  // picture_below() (picture_header.h) and of `charge`. REQUIRES: draws_header(); valid UTF-8.
  StatusOr<std::shared_ptr<EncoderFeatures>> features_below(std::string_view question, RgbImage image,
                                                            const std::function<Status(int64_t bytes)>& charge) const;

 protected:
  using Features = StatusOr<std::shared_ptr<EncoderFeatures>>;
  using Forms = StatusOr<std::vector<std::shared_ptr<EncoderFeatures>>>;

 private:
  // The picture below its question. May throw std::bad_alloc.
  virtual StatusOr<RgbImage> headed(std::string_view question, RgbImage image,
                                    const std::function<Status(int64_t bytes)>& charge) const;
  // May throw std::bad_alloc.
  virtual Features process(RgbImage image) const = 0;
  // May throw std::bad_alloc. Default: process() alone.
  virtual Forms process_forms(RgbImage image) const;
};

// Makes the processor that the model's folder names; without image_processor_type, that of config.json's model_type.
// Errors name the file and the field: kNotFound without a preprocessor_config.json; kInvalidArgument for a value out of
// range or of the wrong type, two that contradict each other, a key that may change pixels and is not known;
// kUnimplemented by name for a class that is not known, and for headers of Pix2Struct (is_vqa) without a font.
StatusOr<std::unique_ptr<ImageProcessor>> make_image_processor(const ModelConfig& config,
                                                               const ImageProcessorParts& parts);

}  // namespace transept
