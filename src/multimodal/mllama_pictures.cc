#include "multimodal/mllama_pictures.h"

#include <utility>

#include "base/strings.h"
#include "multimodal/image_processor_config.h"

namespace transept {
namespace {

constexpr int64_t kMaxSide = 1 << 15, kMaxTiles = 64, kMaxRatios = 4096, kMaxRows = 1 << 20;

// A list of [height, width]; the class's where it is absent. Only how many there are matters.
StatusOr<int64_t> count_ratios(const Json& object, const ConfigReader& reader, int64_t max_tiles) {
  constexpr const char* kKey = "supported_aspect_ratios";
  constexpr int64_t kDefaultTiles = 4, kDefaultRatios = 8;
  const Json* const list = object.find(kKey);
  if (list == nullptr || list->is_null()) {
    if (max_tiles == kDefaultTiles) return kDefaultRatios;
    return reader.error(
        "max_num_tiles",
        str_cat(max_tiles, " is not the 4 of the class's supported_aspect_ratios, and the file has none"));
  }
  if (!list->is_array() || list->as_array().empty() || std::ssize(list->as_array()) > kMaxRatios) {
    return reader.error(kKey, str_cat("expected a list of 1 to ", kMaxRatios, " pairs"));
  }
  for (const Json& pair : list->as_array()) {
    const bool is_pair =
        pair.is_array() && pair.as_array().size() == 2 && pair.as_array()[0].is_int() && pair.as_array()[1].is_int();
    if (!is_pair) return reader.error(kKey, "expected pairs of whole numbers");
  }
  return std::ssize(list->as_array());
}

Status check_processor(const ImageProcessorConfig& processor, const ConfigReader& tower, const MllamaPictures& taken) {
  const ConfigReader& made = processor.reader();
  ASSIGN_OR_RETURN(const bool is_square, made.boolean("default_to_square", true));
  ASSIGN_OR_RETURN(const SizeSpec size,
                   processor.size("size", is_square, {.kind = SizeSpec::Kind::kExact, .size = {224, 224}}));
  if (size.size.height != taken.image) {
    return made.error("size", str_cat(size.size.height, " contradicts ", tower.file(), ": image_size: ", taken.image));
  }
  ASSIGN_OR_RETURN(const int64_t max_tiles, made.integer("max_image_tiles", 1, kMaxTiles, 4));
  if (max_tiles == taken.max_tiles) return ok_status();
  return made.error("max_image_tiles",
                    str_cat(max_tiles, " contradicts ", tower.file(), ": max_num_tiles: ", taken.max_tiles));
}

Status check_rows(const ConfigReader& reader, const MllamaPictures& pictures) {
  if (pictures.num_patches() == 0) return reader.error("patch_size", "is larger than image_size");
  if (pictures.num_rows() > kMaxRows / MllamaPictures::kMaxPictures) {
    return reader.error("image_size", str_cat("gives ", pictures.num_rows(), " rows a picture, more than the ",
                                              kMaxRows / MllamaPictures::kMaxPictures, " allowed"));
  }
  return ok_status();
}

class TileRows final : public ImageRows {
 public:
  TileRows(MllamaPictures pictures, std::string file) : pictures_(std::move(pictures)), file_(std::move(file)) {}

  StatusOr<ImageRowCounts> count(std::span<const int64_t> shape, std::span<const int32_t> extras) const override {
    const bool is_tiles = shape.size() == 4 && shape[1] == 3 && shape[2] == pictures_.image &&
                          shape[3] == pictures_.image && shape[0] >= 1 && shape[0] <= pictures_.max_tiles;
    if (!is_tiles) {
      return invalid_argument("the tower takes 1 to ", pictures_.max_tiles, " tiles of ", pictures_.image, " x ",
                              pictures_.image, " pixels (", file_, ": max_num_tiles, image_size)");
    }
    if (extras.size() != 1 || pictures_.num_tiles(extras[0]) != shape[0]) {
      return invalid_argument("no arrangement of ", shape[0], " tiles");
    }
    const int64_t num_positions = pictures_.num_positions_of(shape[0]);
    return ImageRowCounts{static_cast<int32_t>(num_positions), static_cast<int32_t>(pictures_.num_rows()),
                          static_cast<int32_t>(num_positions - shape[0] * pictures_.rows_a_tile())};
  }

 private:
  const MllamaPictures pictures_;
  const std::string file_;
};

}  // namespace

StatusOr<bool> read_mllama_strict_mask(const ModelConfig& config) {
  return ConfigReader(config.raw, config.path + "/config.json").boolean(kMllamaStrictMask, false);
}

StatusOr<MllamaPictures> read_mllama_pictures(const ModelConfig& config) {
  const std::string file = config.path + "/config.json";
  const Json* const object = config.raw.find("vision_config");
  if (object == nullptr || !object->is_object()) {
    return ConfigReader(config.raw, file).error("vision_config", "is no object");
  }
  const ConfigReader reader(*object, file + ": vision_config");
  MllamaPictures pictures;
  ASSIGN_OR_RETURN(const int64_t channels, reader.integer("num_channels", 1, kMaxSide, 3));
  if (channels != 3) {
    return with_param(unimplemented(reader.file(), ": num_channels: ", channels, " is not supported, only 3"),
                      "num_channels");
  }
  ASSIGN_OR_RETURN(pictures.image, reader.integer("image_size", 1, kMaxSide, 448));
  ASSIGN_OR_RETURN(pictures.patch, reader.integer("patch_size", 1, kMaxSide, 14));
  ASSIGN_OR_RETURN(pictures.max_tiles, reader.integer("max_num_tiles", 1, kMaxTiles, 4));
  RETURN_IF_ERROR(check_rows(reader, pictures));
  ASSIGN_OR_RETURN(pictures.is_strict, read_mllama_strict_mask(config));
  ASSIGN_OR_RETURN(pictures.num_ratios, count_ratios(*object, reader, pictures.max_tiles));
  pictures.arrangements = tile_arrangements(pictures.max_tiles);
  if (std::ssize(pictures.arrangements) > pictures.num_ratios) {
    return reader.error("supported_aspect_ratios",
                        str_cat(pictures.num_ratios, " of them, and ", pictures.max_tiles, " tiles have ",
                                pictures.arrangements.size(), " arrangements"));
  }
  const StatusOr<ImageProcessorConfig> processor = ImageProcessorConfig::load(config.path);
  if (processor.ok()) {
    RETURN_IF_ERROR(check_processor(*processor, reader, pictures));
  } else if (!absl::IsNotFound(processor.status())) {
    return processor.status();
  }
  return pictures;
}

StatusOr<int32_t> read_mllama_image_token(const ModelConfig& config) {
  const ConfigReader reader(config.raw, config.path + "/config.json");
  const int64_t vocab = config.vocab_size > 0 ? config.vocab_size : 128256;
  const char* const key = reader.has("image_token_id") ? "image_token_id" : "image_token_index";
  ASSIGN_OR_RETURN(const int64_t id, reader.integer(key, 0, ModelConfig::kMaxVocabSize, 128256));
  if (id < vocab + kMllamaPromptTokens) return static_cast<int32_t>(id);
  return reader.error(key, str_cat(id, " is outside the ", vocab + kMllamaPromptTokens,
                                   " ids that prompts may hold: 8 more than vocab_size"));
}

StatusOr<std::unique_ptr<ImageRows>> make_mllama_image_rows(const ModelConfig& config) {
  ASSIGN_OR_RETURN(MllamaPictures pictures, read_mllama_pictures(config));
  return std::unique_ptr<ImageRows>(new TileRows(std::move(pictures), config.path + "/config.json: vision_config"));
}

}  // namespace transept
