// Mllama: the picture in a canvas of up to max_image_tiles tiles, padded at the right and the bottom.
#include "multimodal/image_pixels.h"
#include "multimodal/image_processors.h"

namespace transept {
namespace {

constexpr int64_t kMaxTiles = 64;

struct TileOptions {
  int64_t tile = 0;  // pixels of a side
  int64_t max_tiles = 0;
  ResizeFilter filter = ResizeFilter::kBilinear;
  PixelOptions pixels = {};
};

class MllamaImageProcessor final : public ImageProcessor {
 public:
  MllamaImageProcessor(const TileOptions& options, Isa isa)
      : options_(options), arrangements_(tile_arrangements(options.max_tiles)), table_(options.pixels), isa_(isa) {}

 private:
  Features process(RgbImage image) const override {
    const int64_t side = options_.tile;
    const TiledCanvas canvas = tiled_canvas(size_of(image), side, arrangements_);
    const ImageSize& tiles = canvas.tiles;
    ASSIGN_OR_RETURN(image, resized(std::move(image), canvas.image, {.filter = options_.filter}, isa_));
    image = placed(image, {tiles.height * side, tiles.width * side}, 0, 0);
    ASSIGN_OR_RETURN(auto features,
                     make_image_features({tiles.height * tiles.width, RgbImage::kNumChannels, side, side}));
    float* out = features->values.data();
    for (int64_t row = 0; row < tiles.height; ++row) {
      for (int64_t column = 0; column < tiles.width; ++column, out += RgbImage::kNumChannels * side * side) {
        table_.fill(image,
                    {.top = row * side,
                     .left = column * side,
                     .height = side,
                     .width = side,
                     .channel_stride = side * side,
                     .row_stride = side},
                    out);
      }
    }
    features->extras = {canvas.arrangement + 1};
    features->image = {.used_width = image.width,
                       .used_height = image.height,
                       .num_tiles = static_cast<int32_t>(tiles.height * tiles.width)};
    return features;
  }

  TileOptions options_;
  std::vector<ImageSize> arrangements_;
  PixelTable table_;
  Isa isa_;
};

}  // namespace

MadeImageProcessor make_mllama_processor(const ImageProcessorConfig& config, const ImageProcessorParts& parts) {
  constexpr std::string_view kKeys[] = {"max_image_tiles"};
  const ConfigReader& reader = config.reader();
  RETURN_IF_ERROR(config.check_keys("Mllama", kKeys));
  for (const std::string_view key : {"do_resize", "do_pad"}) {
    ASSIGN_OR_RETURN(const bool is_on, reader.boolean(key, true));
    if (!is_on) return reader.error(key, "MllamaImageProcessor does not work without");
  }
  TileOptions options;
  ASSIGN_OR_RETURN(const bool is_square, reader.boolean("default_to_square", true));
  ASSIGN_OR_RETURN(const SizeSpec size,
                   config.size("size", is_square, {.kind = SizeSpec::Kind::kExact, .size = {224, 224}}));
  if (size.kind != SizeSpec::Kind::kExact || size.size.height != size.size.width) {
    return reader.error("size", "expected equal height and width");
  }
  options.tile = size.size.height;
  ASSIGN_OR_RETURN(options.max_tiles, reader.integer("max_image_tiles", 1, kMaxTiles, 4));
  const int64_t values = options.tile * options.tile * RgbImage::kNumChannels;
  if (options.max_tiles > kMaxImageValues / values) {
    return reader.error("max_image_tiles", str_cat(options.max_tiles, " tiles of ", values, " values: more than ",
                                                   kMaxImageValues, " values are not supported"));
  }
  ASSIGN_OR_RETURN(options.filter, config.resample(ResizeFilter::kBilinear));
  ASSIGN_OR_RETURN(options.pixels, config.pixels({.mean = kHalf, .std = kHalf}));
  return std::unique_ptr<ImageProcessor>(std::make_unique<MllamaImageProcessor>(options, parts.isa));
}

}  // namespace transept
