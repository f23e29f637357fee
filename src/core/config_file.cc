#include "core/config_file.h"

#include "base/input_file.h"

namespace transept {

StatusOr<Json> read_json_object(const std::string& path) {
  const Json::ParseLimits limits;
  ASSIGN_OR_RETURN(const std::string text, read_file(path, limits.max_bytes));
  StatusOr<Json> json = Json::parse(text, limits);
  if (!json.ok()) return with_prefix(json.status(), path);
  if (!json->is_object()) return invalid_argument(path, ": expected an object, got ", json->kind_name());
  return json;
}

}  // namespace transept
