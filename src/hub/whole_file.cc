#include "hub/whole_file.h"

#include <filesystem>

#include "base/input_file.h"
#include "base/json.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxJsonBytes = size_t{64} << 20;

// No beginning of a JSON object is one: its last brace is missing.
bool holds_json_object(const std::string& path) {
  const StatusOr<std::string> text = read_file(path, kMaxJsonBytes);
  const StatusOr<Json> json = text.ok() ? Json::parse(*text, {.max_bytes = kMaxJsonBytes}) : text.status();
  return json.ok() && json->is_object();
}

}  // namespace

bool is_whole_file(const std::string& path, const HubSize& hubs) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const uintmax_t size = fs::file_size(path, error);
  if (error) return false;
  if (!hubs.bytes.has_value()) return true;
  const auto wanted = static_cast<uintmax_t>(*hubs.bytes);
  if (hubs.is_large) return size == wanted;
  return size >= wanted || holds_json_object(path);
}

}  // namespace transept
