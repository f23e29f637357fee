// ViT, DeiT, CLIP, BLIP: PilBackend._preprocess of transformers.
#include "multimodal/image_pixels.h"
#include "multimodal/image_processors.h"

namespace transept {
namespace {

struct PlainOptions {
  bool do_resize = true;
  SizeSpec size;
  ResizeFilter filter = ResizeFilter::kBicubic;
  std::optional<ImageSize> crop = {}, pad = {};
  PixelOptions pixels = {};
};

// What the class has where the file is silent.
struct PlainClass {
  std::string_view name;
  SizeSpec size;
  ResizeFilter filter;
  bool is_square;  // "size": 224 is a square, else the shortest edge
  bool do_center_crop;
  SizeSpec crop;
  std::array<double, 3> mean, std;
};

constexpr SizeSpec square(int64_t side) { return {.kind = SizeSpec::Kind::kExact, .size = {side, side}}; }
constexpr SizeSpec edge(int64_t side) { return {.kind = SizeSpec::Kind::kShortestEdge, .shortest = side}; }

constexpr int64_t kClipEdge = 224;
constexpr PlainClass kVit = {"ViT", square(224), ResizeFilter::kBilinear, true, false, {}, kHalf, kHalf};
constexpr PlainClass kDeit = {"DeiT", square(256), ResizeFilter::kBicubic, true, true, square(224), kHalf, kHalf};
constexpr PlainClass kClip = {"CLIP",    edge(kClipEdge), ResizeFilter::kBicubic, false, true, square(kClipEdge),
                              kClipMean, kClipStd};
constexpr PlainClass kBlip = {"Blip", square(384), ResizeFilter::kBicubic, true, false, {}, kClipMean, kClipStd};

ImageSize target_of(const SizeSpec& spec, const ImageSize& in) {
  switch (spec.kind) {
    case SizeSpec::Kind::kShortestEdge: return shortest_edge_size(in, spec.shortest);
    case SizeSpec::Kind::kBoundedEdge: return bounded_edge_size(in, spec.shortest, spec.longest);
    case SizeSpec::Kind::kWithin: return inner_size(in, spec.size);
    default: return spec.size;
  }
}

class PlainImageProcessor final : public ImageProcessor {
 public:
  PlainImageProcessor(const PlainOptions& options, Isa isa) : options_(options), table_(options.pixels), isa_(isa) {}

 private:
  Features process(RgbImage image) const override {
    if (options_.do_resize) {
      const ImageSize target = target_of(options_.size, size_of(image));
      ASSIGN_OR_RETURN(image, resized(std::move(image), target, {.filter = options_.filter}, isa_));
    }
    if (options_.crop.has_value()) image = center_cropped(image, *options_.crop);
    const ImageSize size = size_of(image), outer = options_.pad.value_or(size);
    if (size.height > outer.height || size.width > outer.width) {
      return invalid_argument("the picture is ", size.width, " x ", size.height, " pixels, more than the pad_size of ",
                              outer.width, " x ", outer.height);
    }
    ASSIGN_OR_RETURN(auto features, make_image_features({RgbImage::kNumChannels, outer.height, outer.width}));
    table_.fill(image,
                {.height = size.height,
                 .width = size.width,
                 .channel_stride = outer.height * outer.width,
                 .row_stride = outer.width},
                features->values.data());
    return features;
  }

  PlainOptions options_;
  PixelTable table_;
  Isa isa_;
};

// A size of both sides, under its key. None: the switch is off, or (pad_size) there is no size.
StatusOr<std::optional<ImageSize>> exact_size(const ImageProcessorConfig& config, std::string_view key, bool is_on,
                                              const SizeSpec& fallback) {
  ASSIGN_OR_RETURN(const SizeSpec spec, config.size(key, true, fallback));
  if (!is_on || spec.kind == SizeSpec::Kind::kNone) return std::optional<ImageSize>();
  if (spec.kind != SizeSpec::Kind::kExact) return config.reader().error(key, "expected height and width");
  if (spec.size.height * spec.size.width * RgbImage::kNumChannels > kMaxImageValues) {
    return config.reader().error(key, str_cat("more than ", kMaxImageValues, " values are not supported"));
  }
  return std::optional<ImageSize>(spec.size);
}

MadeImageProcessor make_plain(const PlainClass& of, const ImageProcessorConfig& config, Isa isa) {
  const ConfigReader& reader = config.reader();
  constexpr std::string_view kClipKeys[] = {"use_square_size"};
  const bool is_clip = of.name == kClip.name;
  RETURN_IF_ERROR(config.check_keys(of.name, is_clip ? std::span(kClipKeys) : std::span<const std::string_view>()));
  PlainOptions options;
  ASSIGN_OR_RETURN(options.do_resize, reader.boolean("do_resize", true));
  ASSIGN_OR_RETURN(const bool is_square, reader.boolean("default_to_square", of.is_square));
  ASSIGN_OR_RETURN(options.size, config.size("size", is_square, of.size));
  if (is_clip) {
    ASSIGN_OR_RETURN(const bool is_always_square, reader.boolean("use_square_size", false));
    if (is_always_square) options.size = square(kClipEdge);
  }
  if (options.do_resize && options.size.kind == SizeSpec::Kind::kOther) {
    return reader.error("size", str_cat("a size of this form is nothing that ", of.name, "ImageProcessor resizes to"));
  }
  ASSIGN_OR_RETURN(options.filter, config.resample(of.filter));
  ASSIGN_OR_RETURN(const bool do_center_crop, reader.boolean("do_center_crop", of.do_center_crop));
  ASSIGN_OR_RETURN(options.crop, exact_size(config, "crop_size", do_center_crop, of.crop));
  if (do_center_crop && !options.crop.has_value()) return reader.error("crop_size", "is missing, with do_center_crop");
  ASSIGN_OR_RETURN(const bool do_pad, reader.boolean("do_pad", false));
  ASSIGN_OR_RETURN(options.pad, exact_size(config, "pad_size", do_pad, {}));
  ASSIGN_OR_RETURN(options.pixels, config.pixels({.mean = of.mean, .std = of.std}));
  return std::unique_ptr<ImageProcessor>(std::make_unique<PlainImageProcessor>(options, isa));
}

}  // namespace

MadeImageProcessor make_vit_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts) {
  return make_plain(kVit, config, parts.isa);
}
MadeImageProcessor make_deit_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts) {
  return make_plain(kDeit, config, parts.isa);
}
MadeImageProcessor make_clip_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts) {
  return make_plain(kClip, config, parts.isa);
}
MadeImageProcessor make_blip_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts) {
  return make_plain(kBlip, config, parts.isa);
}

}  // namespace transept
