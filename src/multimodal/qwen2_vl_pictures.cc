#include "multimodal/qwen2_vl_pictures.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/strings.h"

namespace transept {
namespace {

constexpr int64_t kMaxPatchSide = 1024, kMaxMerge = 16, kMaxTemporal = 16;
constexpr int64_t kMaxPositions = 1 << 20;  // ModelSpec's

// "size": {shortest_edge, longest_edge} are pixels of the whole picture; min_pixels and max_pixels win.
Status read_pixels(const ImageProcessorConfig& config, MergedPatchOptions& options) {
  const ConfigReader& reader = config.reader();
  const SizeSpec published{.kind = SizeSpec::Kind::kBoundedEdge, .shortest = 56 * 56, .longest = 28 * 28 * 1280};
  const bool has_min = reader.has("min_pixels"), has_max = reader.has("max_pixels");
  ASSIGN_OR_RETURN(const SizeSpec size, config.size("size", false, published));
  const bool has_sides = size.kind == SizeSpec::Kind::kExact || size.kind == SizeSpec::Kind::kWithin;
  ASSIGN_OR_RETURN(options.min_pixels, reader.integer("min_pixels", 1, kMaxImageValues, size.shortest));
  ASSIGN_OR_RETURN(options.max_pixels, reader.integer("max_pixels", 1, kMaxImageValues, size.longest));
  if (!options.do_resize) return ok_status();
  if (has_sides || options.min_pixels == 0 || options.max_pixels == 0) {
    return reader.error("size", "expected {shortest_edge, longest_edge}, in pixels of the whole picture");
  }
  if (options.min_pixels > options.max_pixels) {
    return reader.error(has_min ? "min_pixels" : "size",
                        str_cat(options.min_pixels, " pixels at least, and ", options.max_pixels, " at most"));
  }
  const int64_t values = options.max_pixels * 3 * options.temporal;
  if (values > kMaxImageValues) {
    return reader.error(has_max ? "max_pixels" : "size",
                        str_cat(options.max_pixels, " pixels are ", values, " values: more than ", kMaxImageValues,
                                " are not supported"));
  }
  return ok_status();
}

// Merged patches of a tower, whose grid stands in the extras.
class MergedRows final : public ImageRows {
 public:
  MergedRows(const Qwen2VlPictures& pictures, std::string file) : pictures_(pictures), file_(std::move(file)) {}

  StatusOr<ImageRowCounts> count(std::span<const int64_t> shape, std::span<const int32_t> extras) const override {
    if (shape.size() != 2 || shape[0] < 1 || shape[1] != pictures_.patch_values()) {
      return invalid_argument("the tower takes patches of ", pictures_.patch_values(), " values (", file_,
                              ": patch_size, temporal_patch_size)");
    }
    if (extras.size() != 3 || extras[0] != 1 || extras[1] < 1 || extras[2] < 1 ||
        int64_t{extras[1]} * extras[2] != shape[0] || extras[1] % pictures_.merge != 0 ||
        extras[2] % pictures_.merge != 0) {
      return invalid_argument("a picture of ", shape[0], " patches has a grid of 1 by rows by columns, multiples of ",
                              pictures_.merge, " (", file_, ": spatial_merge_size)");
    }
    if (shape[0] > pictures_.max_patches) {
      return invalid_argument("the picture has ", shape[0], " patches, more than the ", pictures_.max_patches,
                              " that preprocessor_config.json and the decoder's positions allow");
    }
    const auto patches = static_cast<int32_t>(shape[0]);
    return ImageRowCounts{patches / pictures_.patches_a_row(), patches};
  }

 private:
  Qwen2VlPictures pictures_;
  std::string file_;
};

// Published files have the decoder's fields at the top.
StatusOr<int64_t> decoder_positions(const ModelConfig& config) {
  const Json* const text = config.decoder();
  const std::string file = config.path + "/config.json";
  const ConfigReader reader(text == nullptr ? config.raw : *text, text == nullptr ? file : file + ": text_config");
  return reader.integer("max_position_embeddings", 1, kMaxPositions, 32768);
}

Status check_agreement(const ImageProcessorConfig& processor, const MergedPatchOptions& made, const ConfigReader& tower,
                       const Qwen2VlPictures& taken) {
  struct Pair {
    const char *made_as, *taken_as;
    int64_t made, taken;
  };
  for (const Pair& pair : {Pair{"patch_size", "patch_size", made.patch, taken.patch},
                           Pair{"merge_size", "spatial_merge_size", made.merge, taken.merge},
                           Pair{"temporal_patch_size", "temporal_patch_size", made.temporal, taken.temporal}}) {
    if (pair.made == pair.taken) continue;
    return processor.reader().error(
        pair.made_as, str_cat(pair.made, " contradicts ", tower.file(), ": ", pair.taken_as, ": ", pair.taken));
  }
  return ok_status();
}

}  // namespace

int64_t MergedPatchOptions::max_patches() const {
  if (!do_resize) return kMaxImageValues / patch_values();
  // Sides are rounded to multiples, and are one at least: a long, low picture may come to more than max_pixels, and one
  // that is enlarged to more than min_pixels.
  const auto longest = [](int64_t area) {
    return static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(kMaxProportion * area)))) + 1;
  };
  const int64_t low = factor() * longest(max_pixels);
  const int64_t enlarged = min_pixels + 2 * factor() * longest(min_pixels) + factor() * factor();
  return std::max({max_pixels, low, enlarged}) / (patch * patch);
}

StatusOr<MergedPatchOptions> read_merged_patches(const ImageProcessorConfig& config) {
  const ConfigReader& reader = config.reader();
  MergedPatchOptions options;
  ASSIGN_OR_RETURN(options.do_resize, reader.boolean("do_resize", true));
  ASSIGN_OR_RETURN(options.patch, reader.integer("patch_size", 1, kMaxPatchSide, 14));
  ASSIGN_OR_RETURN(options.merge, reader.integer("merge_size", 1, kMaxMerge, 2));
  ASSIGN_OR_RETURN(options.temporal, reader.integer("temporal_patch_size", 1, kMaxTemporal, 2));
  RETURN_IF_ERROR(read_pixels(config, options));
  ASSIGN_OR_RETURN(options.filter, config.resample(ResizeFilter::kBicubic));
  ASSIGN_OR_RETURN(options.pixels, config.pixels({.mean = kClipMean, .std = kClipStd}));
  return options;
}

StatusOr<Qwen2VlPictures> read_qwen2_vl_pictures(const ModelConfig& config) {
  const std::string file = config.path + "/config.json";
  const Json* const object = config.raw.find("vision_config");
  if (object == nullptr || !object->is_object()) {
    return ConfigReader(config.raw, file).error("vision_config", "is no object");
  }
  const ConfigReader reader(*object, file + ": vision_config");
  Qwen2VlPictures pictures;
  ASSIGN_OR_RETURN(const int64_t channels, reader.integer("in_channels", 1, kMaxPatchSide, 3));
  if (channels != 3) {
    return with_param(unimplemented(reader.file(), ": in_channels: ", channels, " is not supported, only 3"),
                      "in_channels");
  }
  ASSIGN_OR_RETURN(pictures.patch, reader.integer("patch_size", 1, kMaxPatchSide, 14));
  ASSIGN_OR_RETURN(pictures.merge, reader.integer("spatial_merge_size", 1, kMaxMerge, 2));
  ASSIGN_OR_RETURN(pictures.temporal, reader.integer("temporal_patch_size", 1, kMaxTemporal, 2));
  MergedPatchOptions made{.patch = pictures.patch,
                          .merge = pictures.merge,
                          .temporal = pictures.temporal,
                          .min_pixels = 56 * 56,
                          .max_pixels = 28 * 28 * 1280};
  const StatusOr<ImageProcessorConfig> processor = ImageProcessorConfig::load(config.path);
  if (processor.ok()) {
    ASSIGN_OR_RETURN(made, read_merged_patches(*processor));
    RETURN_IF_ERROR(check_agreement(*processor, made, reader, pictures));
  } else if (!absl::IsNotFound(processor.status())) {
    return processor.status();
  }
  ASSIGN_OR_RETURN(const int64_t positions, decoder_positions(config));
  const int64_t a_row = pictures.patches_a_row();
  pictures.max_patches =
      static_cast<int32_t>(std::min(std::max(made.max_patches() / a_row, int64_t{1}), positions) * a_row);
  return pictures;
}

StatusOr<Qwen2VlTokens> read_qwen2_vl_tokens(const ModelConfig& config) {
  const ConfigReader reader(config.raw, config.path + "/config.json");
  const int64_t most = (config.vocab_size > 0 ? config.vocab_size : ModelConfig::kMaxVocabSize) - 1;
  const Qwen2VlTokens published;
  ASSIGN_OR_RETURN(const int64_t image, reader.integer("image_token_id", 0, most, published.image));
  ASSIGN_OR_RETURN(const int64_t video, reader.integer("video_token_id", 0, most, published.video));
  if (image > most) return reader.error("image_token_id", "is missing");
  if (image == video) return reader.error("video_token_id", str_cat(video, " is image_token_id, too"));
  return Qwen2VlTokens{static_cast<int32_t>(image), static_cast<int32_t>(video)};
}

StatusOr<std::unique_ptr<ImageRows>> make_qwen2_vl_image_rows(const ModelConfig& config) {
  ASSIGN_OR_RETURN(const Qwen2VlPictures pictures, read_qwen2_vl_pictures(config));
  return std::unique_ptr<ImageRows>(new MergedRows(pictures, config.path + "/config.json: vision_config"));
}

}  // namespace transept
