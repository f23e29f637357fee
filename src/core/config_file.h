// Reads the small JSON files of a model's folder. Files are untrusted: size and depth are limited. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/model_folder.h"
#include "base/status.h"

namespace transept {

// Returns the object in the file. Errors name the file: it is missing (kNotFound); it is unreadable, over 8 MiB, nested
// deeper than 64 levels, not JSON, or not an object (kInvalidArgument).
StatusOr<Json> read_json_object(const std::string& path);
// The same for a file of a model, on disk or not.
StatusOr<Json> read_json_object(const ModelFolder& folder, std::string_view file);

}  // namespace transept
