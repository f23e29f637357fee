#include "multimodal/image_rows.h"

#include "base/checked_math.h"
#include "base/strings.h"
#include "core/picture_size_field.h"

namespace transept {
namespace {

constexpr int64_t kMaxSide = 1 << 15, kMaxPatch = 1 << 12, kMaxStages = 16;

bool is_picture(std::span<const int64_t> shape) {
  const auto is_side = [](int64_t side) { return side >= 1 && side <= kMaxSide; };
  return shape.size() == 3 && shape[0] == 3 && is_side(shape[1]) && is_side(shape[2]);
}

StatusOr<int32_t> product(const ConfigReader& reader, int64_t a, int64_t b, int64_t more) {
  const std::optional<int64_t> rows = checked_mul(a, b);
  if (!rows.has_value() || *rows > INT32_MAX - more) return reader.error("image_size", "gives too many patches");
  return static_cast<int32_t>(*rows + more);
}

// As many positions as the table has: a picture of another size has no place in it.
class FixedRows final : public ImageRows {
 public:
  FixedRows(PictureSize size, int32_t num_positions, std::string file)
      : size_(size), num_positions_(num_positions), file_(std::move(file)) {}

  StatusOr<ImageRowCounts> count(std::span<const int64_t> shape, std::span<const int32_t> /*extras*/) const override {
    if (is_picture(shape) && PictureSize{shape[1], shape[2]} == size_)
      return ImageRowCounts{num_positions_, num_positions_};
    const std::string made = is_picture(shape) ? str_cat(shape[1], " x ", shape[2]) : std::string("other");
    return invalid_argument("preprocessor_config.json gives pictures of ", made, ", and the tower takes ", size_.height,
                            " x ", size_.width, " (", file_, ": image_size)");
  }

 private:
  PictureSize size_;
  int32_t num_positions_;
  std::string file_;
};

// Patches, whose sides are halved (rounded up) behind each stage but the last.
class SwinRows final : public ImageRows {
 public:
  SwinRows(PictureSize patch, int64_t num_stages) : patch_(patch), num_stages_(num_stages) {}

  StatusOr<ImageRowCounts> count(std::span<const int64_t> shape, std::span<const int32_t> /*extras*/) const override {
    if (!is_picture(shape)) return invalid_argument("the tower takes pictures of [3, height, width]");
    PictureSize map{ceil_div(shape[1], patch_.height), ceil_div(shape[2], patch_.width)};
    const int64_t num_rows = map.height * map.width;
    for (int64_t stage = 1; stage < num_stages_; ++stage) {
      map = {ceil_div(map.height, 2), ceil_div(map.width, 2)};
    }
    return ImageRowCounts{static_cast<int32_t>(map.height * map.width), static_cast<int32_t>(num_rows)};
  }

 private:
  PictureSize patch_;
  int64_t num_stages_;
};

StatusOr<std::unique_ptr<ImageRows>> make_swin_rows(const Json& tower, const ConfigReader& reader) {
  ASSIGN_OR_RETURN(const PictureSize patch, read_picture_size(tower, reader, "patch_size", kMaxPatch, 4));
  int64_t num_stages = 4;
  if (const Json* depths = tower.find("depths"); depths != nullptr && !depths->is_null()) {
    num_stages = depths->is_array() ? static_cast<int64_t>(depths->as_array().size()) : 0;
  }
  if (num_stages < 1 || num_stages > kMaxStages) {
    return reader.error("depths", str_cat("expected a list of 1 to ", kMaxStages, " whole numbers"));
  }
  return std::unique_ptr<ImageRows>(new SwinRows(patch, num_stages));
}

// A ViT's: `num_tokens` stand before the patches.
StatusOr<std::unique_ptr<ImageRows>> make_fixed_rows(const Json& tower, const ConfigReader& reader, int64_t image_side,
                                                     int64_t num_tokens) {
  ASSIGN_OR_RETURN(const PictureSize patch, read_picture_size(tower, reader, "patch_size", kMaxPatch, 16));
  ASSIGN_OR_RETURN(const PictureSize image, read_picture_size(tower, reader, "image_size", kMaxSide, image_side));
  ASSIGN_OR_RETURN(const int32_t positions,
                   product(reader, image.height / patch.height, image.width / patch.width, num_tokens));
  return std::unique_ptr<ImageRows>(new FixedRows(image, positions, reader.file()));
}

}  // namespace

StatusOr<std::unique_ptr<ImageRows>> make_composite_image_rows(const ModelConfig& config) {
  const std::string file = config.path + "/config.json";
  const Json* tower = config.raw.find("encoder");
  if (tower == nullptr || !tower->is_object()) return ConfigReader(config.raw, file).error("encoder", "is no object");
  const ConfigReader reader(*tower, file + ": encoder");
  ASSIGN_OR_RETURN(const std::string type, reader.string("model_type"));
  if (type == "donut-swin") return make_swin_rows(*tower, reader);
  if (type != "vit" && type != "deit") {
    return with_param(unimplemented(reader.file(), ": model_type: \"", type.substr(0, 100),
                                    "\" is not supported; vit, deit and donut-swin are"),
                      "model_type");
  }
  // A token of the class, and DeiT's of distillation.
  return make_fixed_rows(*tower, reader, 224, type == "deit" ? 2 : 1);
}

StatusOr<std::unique_ptr<ImageRows>> make_blip_image_rows(const ModelConfig& config) {
  const Json* object = config.raw.find("vision_config");
  const Json tower = object != nullptr && object->is_object() ? *object : Json::object();
  return make_fixed_rows(tower, ConfigReader(tower, config.path + "/config.json: vision_config"), 384, 1);
}

}  // namespace transept
