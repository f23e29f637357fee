#include "core/picture_convs.h"

#include "base/strings.h"

namespace transept {
namespace {

constexpr int64_t kMaxKernel = 64, kMaxStride = 64;
constexpr int64_t kMaxMapSide = 1 << 12, kDefaultMapSide = 50;

}  // namespace

StatusOr<std::vector<int64_t>> read_stage_list(const Json& object, const ConfigReader& reader, std::string_view key,
                                               int64_t min, int64_t max, std::vector<int64_t> fallback) {
  const Json* list = object.find(key);
  if (list == nullptr || list->is_null()) return fallback;
  if (!list->is_array() || list->as_array().empty() || std::ssize(list->as_array()) > kMaxPictureConvs) {
    return reader.error(key, str_cat("expected a list of 1 to ", kMaxPictureConvs, " numbers"));
  }
  std::vector<int64_t> numbers;
  for (const Json& value : list->as_array()) {
    if (!value.is_int() || value.as_int() < min || value.as_int() > max) {
      return reader.error(key, str_cat("expected whole numbers from ", min, " to ", max));
    }
    numbers.push_back(value.as_int());
  }
  return numbers;
}

StatusOr<std::vector<PictureConv>> read_picture_convs(const Json& object, const ConfigReader& reader) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> kernels,
                   read_stage_list(object, reader, "patch_size", 1, kMaxKernel, {7, 3, 3, 3}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                   read_stage_list(object, reader, "patch_stride", 1, kMaxStride, {4, 2, 2, 2}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> paddings,
                   read_stage_list(object, reader, "patch_padding", 0, kMaxKernel, {3, 1, 1, 1}));
  for (const auto& [key, list] : {std::pair("patch_stride", &strides), std::pair("patch_padding", &paddings)}) {
    if (list->size() == kernels.size()) continue;
    return reader.error(key, str_cat(list->size(), " numbers for ", kernels.size(), " stages of patch_size"));
  }
  std::vector<PictureConv> convs;
  for (size_t i = 0; i < kernels.size(); ++i) {
    convs.push_back({kernels[i], strides[i], paddings[i]});
    if (2 * paddings[i] < kernels[i]) continue;
    return reader.error("patch_padding", str_cat(paddings[i], " is not less than half of the kernel of ", kernels[i]));
  }
  return convs;
}

bool is_original_davit(const Json& object) {
  const Json* dims = object.find("dim_embed");
  return dims != nullptr && !dims->is_null();
}

StatusOr<int64_t> read_max_map_side(const Json& object, const ConfigReader& reader) {
  constexpr std::string_view kTable = "image_pos_embed";
  if (!is_original_davit(object)) return reader.integer("max_position_embeddings", 1, kMaxMapSide, kDefaultMapSide);
  const Json* table = object.find(kTable);
  if (table == nullptr || !table->is_object()) return reader.error(kTable, "expected an object");
  const ConfigReader of_table(*table, str_cat(reader.file(), ": ", kTable));
  ASSIGN_OR_RETURN(const std::string type, of_table.string("type"));
  if (type != "learned_abs_2d") {
    return with_param(
        unimplemented(of_table.file(), ": type: \"", type.substr(0, 100), "\" is not supported, only learned_abs_2d"),
        "type");
  }
  return of_table.integer("max_pos_embeddings", 1, kMaxMapSide, kDefaultMapSide);
}

std::vector<PictureSize> maps_of(const std::vector<PictureConv>& convs, const PictureSize& picture) {
  std::vector<PictureSize> maps;
  PictureSize map = picture;
  for (const PictureConv& conv : convs) {
    map = {conv.output(map.height), conv.output(map.width)};
    if (map.height == 0 || map.width == 0) return {};
    maps.push_back(map);
  }
  return maps;
}

}  // namespace transept
