// CogAgent: a picture stretched to two squares, of which config.json has the sides; there is no
// preprocessor_config.json. Source: the checkpoint's remote code, modeling_cogagent.py, build_conversation_input_ids().
#include <array>

#include "media/resize.h"
#include "multimodal/cogagent_pictures.h"
#include "multimodal/image_pixels.h"
#include "multimodal/image_processors.h"

namespace transept {
namespace {

class CogAgentImageProcessor final : public ImageProcessor {
 public:
  CogAgentImageProcessor(const CogAgentPictures& pictures, Isa isa)
      : sides_{static_cast<int32_t>(pictures.small_side), static_cast<int32_t>(pictures.large_side)},
        table_({.mean = kClipMean, .std = kClipStd}),
        isa_(isa) {}

 private:
  Features process(RgbImage image) const override { return stretched(image, sides_[0]); }

  Forms process_forms(RgbImage image) const override {
    std::vector<std::shared_ptr<EncoderFeatures>> forms;
    for (const int32_t side : sides_) {
      ASSIGN_OR_RETURN(forms.emplace_back(), stretched(image, side));
    }
    return forms;
  }

  Features stretched(const RgbImage& image, int32_t side) const {
    ASSIGN_OR_RETURN(const RgbImage square, resize(image, side, side, {.filter = ResizeFilter::kBicubic}, isa_));
    ASSIGN_OR_RETURN(auto features, make_image_features({RgbImage::kNumChannels, side, side}));
    const int64_t row = side;
    table_.fill(square, {.height = row, .width = row, .channel_stride = row * row, .row_stride = row},
                features->values.data());
    return features;
  }

  const std::array<int32_t, 2> sides_;  // of the small picture, and of the large one
  PixelTable table_;
  Isa isa_;
};

}  // namespace

MadeImageProcessor make_cogagent_image_processor(const ModelConfig& config, const ImageProcessorParts& parts) {
  ASSIGN_OR_RETURN(const CogAgentPictures pictures, read_cogagent_pictures(config));
  const int64_t side = pictures.large_side;
  if (side * side * RgbImage::kNumChannels > kMaxImageValues) {
    return ConfigReader(config.raw, config.path + "/config.json")
        .error("cross_image_size", str_cat("more than ", kMaxImageValues, " values are not supported"));
  }
  return std::unique_ptr<ImageProcessor>(std::make_unique<CogAgentImageProcessor>(pictures, parts.isa));
}

}  // namespace transept
