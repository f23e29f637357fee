// Rows of Pix2Struct's tower: as many as a picture has patches in use.
#include "base/strings.h"
#include "multimodal/image_rows.h"

namespace transept {
namespace {

constexpr int64_t kMaxWidth = 1 << 20, kMaxPlaces = 1 << 20;  // as of the tower (models/pix2struct_tower.cc)
constexpr int64_t kIds = 2;                                   // row and column, before the pixels of a patch

class Pix2StructRows final : public ImageRows {
 public:
  Pix2StructRows(int64_t patch_width, int64_t num_places, std::string file)
      : patch_width_(patch_width), num_places_(num_places), file_(std::move(file)) {}

  StatusOr<ImageRowCounts> count(std::span<const int64_t> shape, std::span<const int32_t> /*extras*/) const override {
    if (shape.size() != 2 || shape[0] < 1) {
      return invalid_argument("the tower takes patches of [patches, 2 + pixels]");
    }
    if (shape[1] != kIds + patch_width_) {
      return invalid_argument("preprocessor_config.json gives patches of ", shape[1] - kIds,
                              " values, and the tower takes ", patch_width_, " (", file_, ": patch_embed_hidden_size)");
    }
    if (shape[0] > num_places_) {
      return invalid_argument("preprocessor_config.json gives ", shape[0], " patches, and the tower takes up to ",
                              num_places_, " (", file_, ": seq_len)");
    }
    const auto rows = static_cast<int32_t>(shape[0]);
    return ImageRowCounts{rows, rows};
  }

  Status check_places(std::span<const int64_t> shape, std::span<const float> values) const override {
    const auto stride = static_cast<size_t>(shape[1]);
    const auto end = static_cast<float>(num_places_);
    for (size_t first = 0; first + kIds <= values.size(); first += stride) {
      for (const float id : values.subspan(first, kIds)) {
        if (id >= 0 && id < end) continue;  // written so that a NaN is refused
        return invalid_argument("a patch stands in row or column ", id, ", and the tower has those below ", num_places_,
                                " (", file_, ": seq_len)");
      }
    }
    return ok_status();
  }

 private:
  int64_t patch_width_;
  int64_t num_places_;
  std::string file_;
};

}  // namespace

StatusOr<std::unique_ptr<ImageRows>> make_pix2struct_image_rows(const ModelConfig& config) {
  const Json* object = config.raw.find("vision_config");
  const Json tower = object != nullptr && object->is_object() ? *object : Json::object();
  const ConfigReader reader(tower, config.path + "/config.json: vision_config");
  ASSIGN_OR_RETURN(const int64_t patch_width, reader.integer("patch_embed_hidden_size", 1, kMaxWidth, 768));
  ASSIGN_OR_RETURN(const int64_t num_places, reader.integer("seq_len", 2, kMaxPlaces, 4096));
  return std::unique_ptr<ImageRows>(new Pix2StructRows(patch_width, num_places, reader.file()));
}

}  // namespace transept
