#include <algorithm>

#include "base/strings.h"
#include "core/picture_convs.h"
#include "multimodal/image_rows.h"

namespace transept {
namespace {

constexpr int64_t kMaxSide = 1 << 15;

// The last map's rows, and their mean in front of them.
class Florence2Rows final : public ImageRows {
 public:
  Florence2Rows(std::vector<PictureConv> convs, int64_t max_side, std::string file)
      : convs_(std::move(convs)), max_side_(max_side), file_(std::move(file)) {}

  StatusOr<ImageRowCounts> count(std::span<const int64_t> shape, std::span<const int32_t> /*extras*/) const override {
    const auto is_side = [](int64_t side) { return side >= 1 && side <= kMaxSide; };
    if (shape.size() != 3 || shape[0] != 3 || !is_side(shape[1]) || !is_side(shape[2])) {
      return invalid_argument("the tower takes pictures of [3, height, width]");
    }
    const std::vector<PictureSize> maps = maps_of(convs_, {shape[1], shape[2]});
    const std::string made = str_cat("preprocessor_config.json gives pictures of ", shape[1], " x ", shape[2]);
    if (maps.empty()) return invalid_argument(made, ", which are smaller than a kernel (", file_, ": patch_size)");
    const PictureSize last = maps.back();
    if (std::max(last.height, last.width) > max_side_) {
      return invalid_argument(made, ", which become ", last.height, " x ", last.width,
                              " rows, and the tables of "
                              "positions have ",
                              max_side_, " (", file_, ")");
    }
    const int64_t positions = 1 + last.height * last.width;
    const int64_t rows = std::max(positions, maps.front().height * maps.front().width);
    return ImageRowCounts{static_cast<int32_t>(positions), static_cast<int32_t>(rows)};
  }

 private:
  std::vector<PictureConv> convs_;
  int64_t max_side_;
  std::string file_;
};

}  // namespace

StatusOr<std::unique_ptr<ImageRows>> make_florence2_image_rows(const ModelConfig& config) {
  constexpr std::string_view kKey = "vision_config";
  const std::string file = config.path + "/config.json";
  const Json* tower = config.raw.find(kKey);
  if (tower == nullptr || !tower->is_object()) return ConfigReader(config.raw, file).error(kKey, "is no object");
  const ConfigReader reader(*tower, str_cat(file, ": ", kKey));
  ASSIGN_OR_RETURN(std::vector<PictureConv> convs, read_picture_convs(*tower, reader));
  ASSIGN_OR_RETURN(const int64_t max_side, read_max_map_side(*tower, reader));
  return std::unique_ptr<ImageRows>(new Florence2Rows(std::move(convs), max_side, reader.file()));
}

}  // namespace transept
