#include "core/picture_size_field.h"

namespace transept {

StatusOr<PictureSize> read_picture_size(const Json& object, const ConfigReader& reader, std::string_view key,
                                        int64_t max, int64_t fallback) {
  const Json* value = object.find(key);
  if (value == nullptr || !value->is_array()) {
    ASSIGN_OR_RETURN(const int64_t side, reader.integer(key, 1, max, fallback));
    return PictureSize{side, side};
  }
  const Json::Array& sides = value->as_array();
  const auto is_side = [&](const Json& side) { return side.is_int() && side.as_int() >= 1 && side.as_int() <= max; };
  if (sides.size() != 2 || !is_side(sides[0]) || !is_side(sides[1])) {
    return reader.error(key, str_cat("expected a whole number from 1 to ", max, ", or a list of height and width"));
  }
  return PictureSize{sides[0].as_int(), sides[1].as_int()};
}

}  // namespace transept
