#include "base/model_folder.h"

#include <filesystem>

#include "base/input_file.h"

namespace transept {

std::string ModelFolder::name_of(std::string_view file) const {
  return str_cat(texts_.contains(file) || disk_.empty() ? path_ : disk_, "/", file);
}

bool ModelFolder::has(std::string_view file) const {
  if (texts_.contains(file)) return true;
  std::error_code ignored;
  return !disk_.empty() && std::filesystem::exists(std::filesystem::path(disk_) / file, ignored);
}

StatusOr<std::string> ModelFolder::read(std::string_view file, size_t max_bytes) const {
  const auto text = texts_.find(file);
  if (text == texts_.end() && disk_.empty()) return not_found(name_of(file), ": the model has no such file");
  if (text == texts_.end()) return read_file(name_of(file), max_bytes);
  if (text->second.size() > max_bytes) {
    return invalid_argument(name_of(file), ": ", text->second.size(), " bytes are over the ", max_bytes, " allowed");
  }
  return text->second;
}

}  // namespace transept
