#include "core/config_file.h"

#include <filesystem>

namespace transept {

StatusOr<Json> read_json_object(const std::string& path) {
  const std::filesystem::path place(path);
  const std::string folder = place.has_parent_path() ? place.parent_path().string() : ".";
  return read_json_object(ModelFolder(folder), place.filename().string());
}

StatusOr<Json> read_json_object(const ModelFolder& folder, std::string_view file) {
  const Json::ParseLimits limits;
  ASSIGN_OR_RETURN(const std::string text, folder.read(file, limits.max_bytes));
  StatusOr<Json> json = Json::parse(text, limits);
  if (!json.ok()) return with_prefix(json.status(), folder.name_of(file));
  if (!json->is_object()) {
    return invalid_argument(folder.name_of(file), ": expected an object, got ", json->kind_name());
  }
  return json;
}

}  // namespace transept
