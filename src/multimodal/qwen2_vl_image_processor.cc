// Qwen2-VL and Qwen2.5-VL: sides of whole merged patches, flattened: merged patches in rows, patches in rows within
// them.
#include <algorithm>

#include "multimodal/image_pixels.h"
#include "multimodal/image_processors.h"
#include "multimodal/qwen2_vl_pictures.h"

namespace transept {
namespace {

class Qwen2VlImageProcessor final : public ImageProcessor {
 public:
  Qwen2VlImageProcessor(const MergedPatchOptions& options, Isa isa)
      : options_(options), table_(options.pixels), isa_(isa) {}

 private:
  Features process(RgbImage image) const override {
    const int64_t factor = options_.factor();
    if (options_.do_resize) {
      const int64_t longer = std::max(image.width, image.height), shorter = std::min(image.width, image.height);
      if (longer > kMaxProportion * shorter) {
        return invalid_argument("the picture of ", image.width, " x ", image.height,
                                " pixels: its longer side is more than ", kMaxProportion, " times its shorter one");
      }
      const ImageSize target = smart_size(size_of(image), factor, options_.min_pixels, options_.max_pixels);
      ASSIGN_OR_RETURN(image, resized(std::move(image), target, {.filter = options_.filter}, isa_));
    }
    if (image.height % factor != 0 || image.width % factor != 0) {
      return invalid_argument("the picture of ", image.width, " x ", image.height,
                              " pixels: its sides are no multiples of ", factor, ", and do_resize is off");
    }
    const ImageSize grid{image.height / options_.patch, image.width / options_.patch};
    const int64_t depth = RgbImage::kNumChannels * options_.temporal * options_.patch * options_.patch;
    ASSIGN_OR_RETURN(auto features, make_image_features({grid.height * grid.width, depth}));
    fill_patches(image, grid, features->values.data());
    features->extras = {1, static_cast<int32_t>(grid.height), static_cast<int32_t>(grid.width)};
    features->image.used_width = image.width;
    features->image.used_height = image.height;
    return features;
  }

  void fill_patches(const RgbImage& image, const ImageSize& grid, float* out) const {
    const int64_t merge = options_.merge, depth = RgbImage::kNumChannels * options_.temporal * area();
    for (int64_t top = 0; top < grid.height; top += merge) {
      for (int64_t left = 0; left < grid.width; left += merge) {
        for (int64_t i = 0; i < merge * merge; ++i, out += depth)
          fill_patch(image, top + i / merge, left + i % merge, out);
      }
    }
  }

  // [channels, temporal, patch, patch]: each channel the same for all times.
  void fill_patch(const RgbImage& image, int64_t row, int64_t column, float* out) const {
    const int64_t patch = options_.patch;
    table_.fill(image,
                {.top = row * patch,
                 .left = column * patch,
                 .height = patch,
                 .width = patch,
                 .channel_stride = options_.temporal * area(),
                 .row_stride = patch},
                out);
    for (int64_t channel = 0; channel < RgbImage::kNumChannels; ++channel) {
      const float* const first = out + channel * options_.temporal * area();
      for (int64_t t = 1; t < options_.temporal; ++t)
        std::copy_n(first, area(), out + (channel * options_.temporal + t) * area());
    }
  }

  int64_t area() const { return options_.patch * options_.patch; }

  MergedPatchOptions options_;
  PixelTable table_;
  Isa isa_;
};

}  // namespace

MadeImageProcessor make_qwen2_vl_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts) {
  constexpr std::string_view kKeys[] = {"min_pixels", "max_pixels", "patch_size", "temporal_patch_size", "merge_size"};
  RETURN_IF_ERROR(config.check_keys("Qwen2VL", kKeys));
  ASSIGN_OR_RETURN(const MergedPatchOptions options, read_merged_patches(config));
  return std::unique_ptr<ImageProcessor>(std::make_unique<Qwen2VlImageProcessor>(options, parts.isa));
}

}  // namespace transept
