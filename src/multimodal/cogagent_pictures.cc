#include "multimodal/cogagent_pictures.h"

#include "base/strings.h"

namespace transept {
namespace {

constexpr int64_t kMaxSide = 1 << 15, kMaxRows = 1 << 19;

Status check_grid(const ConfigReader& reader, std::string_view key, int64_t side, int64_t patch) {
  if (patch > side) return reader.error(key, str_cat(side, " pixels are less than a patch of ", patch));
  const int64_t grid = side / patch;
  if (grid * grid <= kMaxRows) return ok_status();
  return reader.error(
      key, str_cat(side, " pixels are ", grid * grid, " patches of ", patch, ", more than the ", kMaxRows, " allowed"));
}

class BothRows final : public ImageRows {
 public:
  BothRows(const CogAgentPictures& pictures, std::string file) : pictures_(pictures), file_(std::move(file)) {}

  StatusOr<ImageRowCounts> count(std::span<const int64_t> shape, std::span<const int32_t> /*extras*/) const override {
    const auto is = [&](int64_t side) {
      return shape.size() == 3 && shape[0] == 3 && shape[1] == side && shape[2] == side;
    };
    const auto spliced = static_cast<int32_t>(pictures_.num_spliced());
    if (is(pictures_.small_side)) return ImageRowCounts{spliced, spliced};
    if (is(pictures_.large_side)) {
      return ImageRowCounts{static_cast<int32_t>(pictures_.num_crossed()),
                            static_cast<int32_t>(pictures_.num_large_rows())};
    }
    return invalid_argument("the towers take pictures of ", pictures_.small_side, " x ", pictures_.small_side, " and ",
                            pictures_.large_side, " x ", pictures_.large_side, " (", file_,
                            ": vision_config: image_size, cross_image_size)");
  }

 private:
  const CogAgentPictures pictures_;
  const std::string file_;
};

}  // namespace

StatusOr<Json> cogagent_large_tower(const ModelConfig& config) {
  constexpr const char* kKey = "cross_vision_config";
  const Json* const object = config.raw.find(kKey);
  if (object == nullptr || object->is_null()) return Json::object();
  if (object->is_object()) return *object;
  return ConfigReader(config.raw, config.path + "/config.json").error(kKey, "is no object");
}

StatusOr<CogAgentPictures> read_cogagent_pictures(const ModelConfig& config) {
  const std::string file = config.path + "/config.json";
  const ConfigReader top(config.raw, file);
  const Json* const object = config.raw.find("vision_config");
  if (object == nullptr || !object->is_object()) return top.error("vision_config", "is no object");
  const ConfigReader small(*object, file + ": vision_config");
  ASSIGN_OR_RETURN(const Json large_object, cogagent_large_tower(config));
  const ConfigReader large(large_object, file + ": cross_vision_config");
  CogAgentPictures pictures;
  for (const ConfigReader* reader : {&small, &large}) {
    ASSIGN_OR_RETURN(const int64_t channels, reader->integer("in_channels", 1, kMaxSide, 3));
    if (channels == 3) continue;
    return with_param(unimplemented(reader->file(), ": in_channels: ", channels, " is not supported, only 3"),
                      "in_channels");
  }
  ASSIGN_OR_RETURN(pictures.small_side, small.integer("image_size", 1, kMaxSide, 224));
  ASSIGN_OR_RETURN(pictures.small_patch, small.integer("patch_size", 1, kMaxSide, 14));
  ASSIGN_OR_RETURN(pictures.large_side, top.integer("cross_image_size", 1, kMaxSide, 1120));
  ASSIGN_OR_RETURN(const int64_t named_side, large.integer("image_size", 1, kMaxSide, pictures.large_side));
  if (named_side != pictures.large_side) {
    return large.error("image_size", str_cat(named_side, " contradicts cross_image_size ", pictures.large_side));
  }
  ASSIGN_OR_RETURN(pictures.large_patch, large.integer("patch_size", 1, kMaxSide, 14));
  RETURN_IF_ERROR(check_grid(small, "image_size", pictures.small_side, pictures.small_patch));
  RETURN_IF_ERROR(check_grid(top, "cross_image_size", pictures.large_side, pictures.large_patch));
  if (pictures.small_side == pictures.large_side) {
    return with_param(unimplemented(file, ": cross_image_size: ", pictures.large_side,
                                    " is the image_size of vision_config: two forms of one size are not supported"),
                      "cross_image_size");
  }
  return pictures;
}

StatusOr<CogAgentTemplate> read_cogagent_template(const ModelConfig& config) {
  constexpr const char* kKey = "template_version";
  const ConfigReader reader(config.raw, config.path + "/config.json");
  ASSIGN_OR_RETURN(const std::string version, reader.string(kKey, "chat"));
  if (version == "base") return CogAgentTemplate{};
  if (version == "chat") return CogAgentTemplate{" [INST] ", " [/INST] "};
  if (version == "chat_old") return CogAgentTemplate{"<EOI>Question: ", " Answer:"};
  if (version == "vqa") return CogAgentTemplate{"<EOI>Question: ", " Short answer:"};
  return reader.error(kKey, str_cat("\"", version.substr(0, 100), "\" is none of base, chat, chat_old and vqa"));
}

StatusOr<std::unique_ptr<ImageRows>> make_cogagent_image_rows(const ModelConfig& config) {
  ASSIGN_OR_RETURN(const CogAgentPictures pictures, read_cogagent_pictures(config));
  return std::unique_ptr<ImageRows>(new BothRows(pictures, config.path + "/config.json"));
}

}  // namespace transept
