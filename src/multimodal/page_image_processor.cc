// Donut and Nougat: a page, upright, within the size and in its middle. Both are one class but for Nougat's cropped
// margins, its thumbnail (always bicubic, of a reduced picture), and Donut's centre crop and turned list of sizes.
#include <algorithm>

#include "multimodal/image_pixels.h"
#include "multimodal/image_processors.h"

namespace transept {
namespace {

constexpr double kMarginThreshold = 200;  // of 255 between the darkest and the lightest pixel: lighter is margin
constexpr double kNougatGap = 2.0;

struct PageOptions {
  bool do_crop_margin = false, do_align_long_axis = false, do_resize = true, do_thumbnail = true, do_pad = true;
  ImageSize size;
  ResizeFilter filter = ResizeFilter::kBilinear;
  ResizeOptions thumbnail = {};
  std::optional<ImageSize> crop = {};
  PixelOptions pixels = {};
};

// Pillow's convert("L").
uint8_t grey(const uint8_t* rgb) {
  constexpr int32_t kRed = 19595, kGreen = 38470, kBlue = 7471, kHalfPoint = 0x8000;
  return static_cast<uint8_t>((rgb[0] * kRed + rgb[1] * kGreen + rgb[2] * kBlue + kHalfPoint) >> 16);
}

// NougatImageProcessor.crop_margin.
RgbImage without_margin(RgbImage image) {
  uint8_t least = 255, most = 0;
  for (size_t i = 0; i < image.pixels.size(); i += RgbImage::kNumChannels) {
    const uint8_t level = grey(image.pixels.data() + i);
    least = std::min(least, level);
    most = std::max(most, level);
  }
  if (least == most) return image;
  const auto is_ink = [&](uint8_t level) {
    return static_cast<double>(level - least) / static_cast<double>(most - least) * 255 < kMarginThreshold;
  };
  int64_t left = image.width, right = 0, top = image.height, bottom = 0;
  const uint8_t* pixel = image.pixels.data();
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x, pixel += RgbImage::kNumChannels) {
      if (!is_ink(grey(pixel))) continue;
      left = std::min(left, x);
      right = std::max(right, x + 1);
      top = std::min(top, y);
      bottom = std::max(bottom, y + 1);
    }
  }
  return placed(image, {bottom - top, right - left}, -top, -left);
}

class PageImageProcessor final : public ImageProcessor {
 public:
  PageImageProcessor(const PageOptions& options, Isa isa) : options_(options), table_(options.pixels), isa_(isa) {}

 private:
  bool is_across(const RgbImage& image) const {
    const ImageSize& size = options_.size;
    return (size.width < size.height && image.width > image.height) ||
           (size.width > size.height && image.width < image.height);
  }

  Features process(RgbImage image) const override {
    const ImageSize& size = options_.size;
    if (options_.do_crop_margin) image = without_margin(std::move(image));
    if (options_.do_align_long_axis && is_across(image)) image = turned(image);
    if (options_.do_resize) {
      const ImageSize target = shortest_edge_size(size_of(image), std::min(size.height, size.width));
      ASSIGN_OR_RETURN(image, resized(std::move(image), target, {.filter = options_.filter}, isa_));
    }
    if (options_.do_thumbnail) {
      const std::optional<ImageSize> smaller = thumbnail_size(size_of(image), size);
      if (smaller.has_value()) {
        ASSIGN_OR_RETURN(image, resized(std::move(image), *smaller, options_.thumbnail, isa_));
      }
    }
    if (options_.do_pad) {
      if (image.height > size.height || image.width > size.width) {
        return invalid_argument("the picture is ", image.width, " x ", image.height, " pixels, more than the size of ",
                                size.width, " x ", size.height, " to which it is padded");
      }
      image = placed(image, size, (size.height - image.height) / 2, (size.width - image.width) / 2);
    }
    if (options_.crop.has_value()) image = center_cropped(image, *options_.crop);
    const ImageSize out = size_of(image);
    ASSIGN_OR_RETURN(auto features, make_image_features({RgbImage::kNumChannels, out.height, out.width}));
    table_.fill(
        image,
        {.height = out.height, .width = out.width, .channel_stride = out.height * out.width, .row_stride = out.width},
        features->values.data());
    return features;
  }

  PageOptions options_;
  PixelTable table_;
  Isa isa_;
};

Status check_exact(const ImageProcessorConfig& config, std::string_view key, const SizeSpec& spec) {
  if (spec.kind != SizeSpec::Kind::kExact) return config.reader().error(key, "expected height and width");
  if (spec.size.height * spec.size.width * RgbImage::kNumChannels > kMaxImageValues) {
    return config.reader().error(key, str_cat("more than ", kMaxImageValues, " values are not supported"));
  }
  return ok_status();
}

// What both read alike.
StatusOr<PageOptions> read_page(const ImageProcessorConfig& config, const ImageSize& size, const PixelOptions& pixels) {
  const ConfigReader& reader = config.reader();
  PageOptions options;
  ASSIGN_OR_RETURN(options.do_resize, reader.boolean("do_resize", true));
  ASSIGN_OR_RETURN(options.do_thumbnail, reader.boolean("do_thumbnail", true));
  ASSIGN_OR_RETURN(options.do_align_long_axis, reader.boolean("do_align_long_axis", false));
  ASSIGN_OR_RETURN(options.do_pad, reader.boolean("do_pad", true));
  ASSIGN_OR_RETURN(options.filter, config.resample(ResizeFilter::kBilinear));
  ASSIGN_OR_RETURN(const bool is_square, reader.boolean("default_to_square", true));
  ASSIGN_OR_RETURN(const SizeSpec spec, config.size("size", is_square, {.kind = SizeSpec::Kind::kExact, .size = size}));
  RETURN_IF_ERROR(check_exact(config, "size", spec));
  options.size = spec.size;
  ASSIGN_OR_RETURN(options.pixels, config.pixels(pixels));
  return options;
}

}  // namespace

MadeImageProcessor make_donut_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts) {
  constexpr std::string_view kKeys[] = {"do_thumbnail", "do_align_long_axis"};
  RETURN_IF_ERROR(config.check_keys("Donut", kKeys));
  ASSIGN_OR_RETURN(PageOptions options, read_page(config, {2560, 1920}, {.mean = kHalf, .std = kHalf}));
  // Old files have a list, [width, height].
  const Json* size = config.object().find("size");
  if (size != nullptr && size->is_array()) std::swap(options.size.height, options.size.width);
  // `resample or BICUBIC`: nearest is 0.
  const bool is_nearest = options.filter == ResizeFilter::kNearest;
  options.thumbnail.filter = is_nearest ? ResizeFilter::kBicubic : options.filter;
  ASSIGN_OR_RETURN(const bool do_center_crop, config.reader().boolean("do_center_crop", false));
  if (do_center_crop) {
    ASSIGN_OR_RETURN(const SizeSpec crop, config.size("crop_size", true, {}));
    RETURN_IF_ERROR(check_exact(config, "crop_size", crop));
    options.crop = crop.size;
  }
  return std::unique_ptr<ImageProcessor>(std::make_unique<PageImageProcessor>(options, parts.isa));
}

MadeImageProcessor make_nougat_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts) {
  constexpr std::string_view kKeys[] = {"do_thumbnail", "do_align_long_axis", "do_crop_margin"};
  RETURN_IF_ERROR(config.check_keys("Nougat", kKeys));
  ASSIGN_OR_RETURN(PageOptions options, read_page(config, {896, 672}, {.mean = kImagenetMean, .std = kImagenetStd}));
  ASSIGN_OR_RETURN(options.do_crop_margin, config.reader().boolean("do_crop_margin", true));
  options.thumbnail = {.filter = ResizeFilter::kBicubic, .reducing_gap = kNougatGap};
  return std::unique_ptr<ImageProcessor>(std::make_unique<PageImageProcessor>(options, parts.isa));
}

}  // namespace transept
