#include "multimodal/media_path.h"

#include <algorithm>
#include <filesystem>

#include "base/strings.h"

namespace transept {
namespace {

// The file itself, with nothing in its path that leads elsewhere.
StatusOr<std::string> resolve(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) return not_found(path);
  return file.string();
}

// Both resolved, so that neither ".." nor a link leads out of the folder.
bool is_below(const std::filesystem::path& file, const std::string& folder) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(folder, error);
  if (error) return false;
  const auto [root_end, ignored] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  return root_end == root.end();
}

// "image[2]": what the sender is to send.
std::string_view modality_of(std::string_view name) { return name.substr(0, name.find('[')); }

}  // namespace

Status media_error(std::string_view name, std::string_view reason) {
  return field_error(kMediaParam, str_cat(kMediaParam, ": ", name, ": ", reason));
}

Status media_status(const Status& status, std::string_view prefix) {
  // A message of ours names the field already; a library's reasons get what they are about.
  const std::string part = error_param(status);
  if (part == kMediaParam) return status;
  const std::string message = str_cat(prefix, ": ", part.empty() ? "" : str_cat(part, ": "), error_message(status));
  return with_param(Status(status.code(), message), kMediaParam);
}

Status not_below_error(std::string_view name) {
  return media_error(name, "the path is not a file below the folder that is allowed");
}

StatusOr<std::string> media_path(const std::string& path, const MediaAccess& access, std::string_view name) {
  if (!access.local_paths) {
    return media_error(name, str_cat("paths are not allowed here: send the ", modality_of(name), " itself"));
  }
  if (path.find('\0') != std::string::npos) return media_error(name, "a path with a zero byte in it");
  if (access.allowed_path.empty()) return path;
  // What is not there and what may not be read are told alike. Read is what was judged, not what a link says by then.
  StatusOr<std::string> resolved = resolve(path);
  if (!resolved.ok() || !is_below(*resolved, access.allowed_path)) return not_below_error(name);
  return resolved;
}

}  // namespace transept
