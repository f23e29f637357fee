// Reading of the small JSON files of a model's folder. Untrusted: size and depth are limited.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"

namespace transept {

// The object that the file holds. Errors name the file: it is missing, over 8 MiB, not JSON, or not an object.
StatusOr<Json> read_json_object(const std::string& path);

}  // namespace transept
