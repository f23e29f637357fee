// Pix2Struct: the picture less its mean, by its deviation, resized in single precision to as many patches as fit.
#include <algorithm>
#include <cmath>

#include "multimodal/image_pixels.h"
#include "multimodal/image_processors.h"
#include "multimodal/picture_header.h"

namespace transept {
namespace {

constexpr int64_t kMaxPatches = 1 << 20;
constexpr int64_t kMaxPatchSide = 1024;
constexpr int64_t kIds = 2;  // row and column, before a patch

struct PatchOptions {
  ImageSize patch;
  int64_t max_patches = 0;
  bool do_normalize = true;
};

// numpy's sum of single precision, over value(first) .. value(first + n - 1): in eights, in blocks of 128, in halves
// (loops_utils.h.src, FLOAT_pairwise_sum).
template <typename F>
float pairwise_sum(const F& value, int64_t first, int64_t n) {
  constexpr int64_t kLanes = 8, kBlock = 128;
  if (n < kLanes) {
    float sum = -0.0f;
    for (int64_t i = 0; i < n; ++i) sum += value(first + i);
    return sum;
  }
  if (n <= kBlock) {
    float sums[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] = value(first + lane);
    int64_t i = kLanes;
    for (; i < n - n % kLanes; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += value(first + i + lane);
    }
    float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < n; ++i) sum += value(first + i);
    return sum;
  }
  const int64_t half = n / 2 - n / 2 % kLanes;
  return pairwise_sum(value, first, half) + pairwise_sum(value, first + half, n - half);
}

// The levels less their mean, by their deviation: each rounded as numpy's mean() and std() round.
LevelValues standardised(const RgbImage& image) {
  const auto n = static_cast<int64_t>(image.pixels.size());
  const auto mean_of = [&](const LevelValues& values) {
    const uint8_t* const levels = image.pixels.data();
    const float sum = pairwise_sum([&](int64_t i) { return values[levels[i]]; }, 0, n);
    return static_cast<float>(static_cast<double>(sum) / static_cast<double>(n));
  };
  LevelValues values, squares;
  for (size_t level = 0; level < values.size(); ++level) values[level] = static_cast<float>(level);
  const float mean = mean_of(values);
  for (size_t level = 0; level < values.size(); ++level) {
    values[level] -= mean;
    squares[level] = values[level] * values[level];
  }
  const auto least = static_cast<float>(1.0 / std::sqrt(static_cast<double>(n)));
  const float deviation = std::max(std::sqrt(mean_of(squares)), least);
  for (float& value : values) value /= deviation;
  return values;
}

class Pix2StructImageProcessor final : public ImageProcessor {
 public:
  // header_font: null, no question is drawn.
  Pix2StructImageProcessor(const PatchOptions& options, std::shared_ptr<const HeaderFont> header_font, Isa isa)
      : options_(options), header_font_(std::move(header_font)), isa_(isa) {}

  bool draws_header() const override { return header_font_ != nullptr; }

 private:
  StatusOr<RgbImage> headed(std::string_view question, RgbImage image,
                            const std::function<Status(int64_t bytes)>& charge) const override {
    return picture_below(question, std::move(image), *header_font_, charge, isa_);
  }

  Features process(RgbImage image) const override {
    LevelValues values;
    if (options_.do_normalize) {
      values = standardised(image);
    } else {
      for (size_t level = 0; level < values.size(); ++level) values[level] = static_cast<float>(level);
    }
    const ImageSize& patch = options_.patch;
    const ImageSize grid = patch_grid(size_of(image), patch, options_.max_patches);
    const int64_t depth = patch.height * patch.width * RgbImage::kNumChannels;
    ASSIGN_OR_RETURN(auto features, make_image_features({grid.height * grid.width, kIds + depth}));
    const int64_t height = grid.height * patch.height, width = grid.width * patch.width;
    if (height > kMaxImageSide || width > kMaxImageSide) {
      return invalid_argument("the picture of ", image.width, " x ", image.height, " pixels would become one of ",
                              width, " x ", height, ": sides of up to ", kMaxImageSide, " are supported");
    }
    std::vector<float> pixels(static_cast<size_t>(height * width * RgbImage::kNumChannels));
    RETURN_IF_ERROR(resize_values(image, values, static_cast<int32_t>(width), static_cast<int32_t>(height), pixels));
    fill_patches(pixels.data(), grid, features->values.data());
    features->image.used_width = static_cast<int32_t>(width);
    features->image.used_height = static_cast<int32_t>(height);
    return without_empty_patches(std::move(features));
  }

  // The reference masks patches whose numbers sum to 0, as it masks those that pad: no row sees them. numpy's sum, too.
  static Features without_empty_patches(std::shared_ptr<EncoderFeatures> features) {
    const int64_t stride = features->shape[1];
    int64_t num_kept = 0;
    for (int64_t patch = 0; patch < features->shape[0]; ++patch) {
      const float* const from = features->values.data() + patch * stride;
      if (pairwise_sum([&](int64_t i) { return from[i]; }, 0, stride) == 0) continue;
      if (num_kept != patch) std::copy_n(from, stride, features->values.data() + num_kept * stride);
      ++num_kept;
    }
    if (num_kept == 0) return invalid_argument("every patch of the picture sums to 0: none is left");
    features->shape[0] = num_kept;
    features->values.resize(static_cast<size_t>(num_kept * stride));
    return features;
  }

  void fill_patches(const float* pixels, const ImageSize& grid, float* out) const {
    const int64_t patch_row = options_.patch.width * RgbImage::kNumChannels, image_row = grid.width * patch_row;
    for (int64_t row = 0; row < grid.height; ++row) {
      for (int64_t column = 0; column < grid.width; ++column) {
        *out++ = static_cast<float>(row + 1);
        *out++ = static_cast<float>(column + 1);
        const float* from = pixels + row * options_.patch.height * image_row + column * patch_row;
        for (int64_t y = 0; y < options_.patch.height; ++y, from += image_row) out = std::copy_n(from, patch_row, out);
      }
    }
  }

  PatchOptions options_;
  std::shared_ptr<const HeaderFont> header_font_;
  Isa isa_;
};

}  // namespace

MadeImageProcessor make_pix2struct_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts) {
  constexpr std::string_view kKeys[] = {"max_patches", "patch_size", "is_vqa", "header_text"};
  const ConfigReader& reader = config.reader();
  RETURN_IF_ERROR(config.check_keys("Pix2Struct", kKeys));
  ASSIGN_OR_RETURN(const bool is_vqa, reader.boolean("is_vqa", false));
  if (is_vqa && parts.header_font == nullptr) {
    return with_param(
        unimplemented(reader.file(),
                      ": is_vqa: this model reads its question from the picture, above which it is drawn; "
                      "that needs a font: give --header-font FILE (Arial, as in training, or for instance "
                      "DejaVuSans.ttf of Debian's fonts-dejavu-core)"),
        "is_vqa");
  }
  PatchOptions options;
  ASSIGN_OR_RETURN(options.do_normalize, reader.boolean("do_normalize", true));
  ASSIGN_OR_RETURN(options.max_patches, reader.integer("max_patches", 1, kMaxPatches, 2048));
  ASSIGN_OR_RETURN(const SizeSpec patch,
                   config.size("patch_size", true, {.kind = SizeSpec::Kind::kExact, .size = {16, 16}}));
  options.patch = patch.size;
  if (patch.kind != SizeSpec::Kind::kExact || options.patch.height > kMaxPatchSide ||
      options.patch.width > kMaxPatchSide) {
    return reader.error("patch_size", str_cat("expected height and width of up to ", kMaxPatchSide));
  }
  const int64_t values = options.patch.height * options.patch.width * RgbImage::kNumChannels + kIds;
  if (options.max_patches > kMaxImageValues / values) {
    return reader.error("max_patches", str_cat(options.max_patches, " patches of ", values, " values: more than ",
                                               kMaxImageValues, " values are not supported"));
  }
  return std::unique_ptr<ImageProcessor>(
      std::make_unique<Pix2StructImageProcessor>(options, is_vqa ? parts.header_font : nullptr, parts.isa));
}

}  // namespace transept
