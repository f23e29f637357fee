#include "hub/hub_settings.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/ascii.h"
#include "base/input_file.h"
#include "base/quoted.h"
#include "hub/hub_url.h"

namespace transept {
namespace {

constexpr std::string_view kDefaultEndpoint = "https://huggingface.co";
constexpr size_t kMaxTokenBytes = 4096;

class Variables final {
 public:
  explicit Variables(const HubSettings::Getter& getter) : getter_(getter) {}

  // The first that is set, and its name.
  struct Found {
    std::string name, value;
  };
  std::optional<Found> first(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (auto value = getter_(name); value.has_value() && !value->empty()) return Found{name, std::move(*value)};
    }
    return std::nullopt;
  }
  std::string text(std::initializer_list<const char*> names, const std::string& fallback) const {
    const std::optional<Found> found = first(names);
    return found.has_value() ? found->value : fallback;
  }
  // As huggingface_hub reads switches.
  bool is_on(const char* name) const {
    const std::string value = ascii_lower(text({name}, ""));
    return value == "1" || value == "on" || value == "yes" || value == "true";
  }
  std::string path(std::initializer_list<const char*> names, const std::string& fallback) const {
    return expanded_path(text(names, fallback), getter_);
  }

 private:
  const HubSettings::Getter& getter_;
};

std::string home_folder(const HubSettings::Getter& variable) {
  if (const auto home = variable("HOME"); home.has_value() && !home->empty()) return *home;
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "/";
}

std::string clean_token(std::string_view text) {
  std::string token;
  for (const char c : text) {
    if (c != '\r' && c != '\n') token += c;
  }
  return std::string(trim(token));
}

Status read_token(const Variables& variables, const std::string& home, HubSettings& settings) {
  if (variables.is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return ok_status();
  if (const auto given = variables.first({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})) {
    RETURN_IF_ERROR(settings.use_token(given->value, given->name));
  }
  if (!settings.token.empty()) return ok_status();
  const std::string path = variables.path({"HF_TOKEN_PATH"}, home + "/token");
  std::error_code error;
  std::string text;
  if (std::filesystem::is_regular_file(path, error)) {
    ASSIGN_OR_RETURN(text, read_file(path, kMaxTokenBytes));
  }
  return settings.use_token(text, path);
}

Status read_seconds(const Variables& variables, const char* name, std::chrono::seconds& target) {
  const std::string text = variables.text({name}, "");
  if (text.empty()) return ok_status();
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (*end != 0 || value < 1 || value > 86400) {
    return invalid_argument(name, "=", in_quotes(text), ": expected 1 to 86400 seconds");
  }
  target = std::chrono::seconds(value);
  return ok_status();
}

}  // namespace

std::string expanded_path(std::string path, const HubSettings::Getter& variable) {
  if (path == "~" || path.starts_with("~/")) path = home_folder(variable) + path.substr(1);
  std::string out;
  for (size_t i = 0; i < path.size();) {
    const bool is_braced = path.compare(i, 2, "${") == 0;
    const size_t begin = i + (is_braced ? 2 : 1);
    size_t end = begin;
    const auto is_word = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
    while (path[i] == '$' && end < path.size() && is_word(path[end])) ++end;
    const bool is_closed = !is_braced || (end < path.size() && path[end] == '}');
    const auto value = end > begin && is_closed ? variable(path.substr(begin, end - begin)) : std::nullopt;
    if (value.has_value()) {
      out += *value;
      i = end + (is_braced ? 1 : 0);
    } else {
      out += path[i++];
    }
  }
  return out;
}

StatusOr<HubSettings> HubSettings::from(const Getter& getter) {
  const Variables variables(getter);
  HubSettings settings;
  settings.endpoint = variables.text({"HF_ENDPOINT"}, std::string(kDefaultEndpoint));
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (const auto origin = url_origin(settings.endpoint); !origin.ok()) {
    settings.endpoint_error = with_prefix(origin.status(), "HF_ENDPOINT");
    settings.endpoint.clear();  // no message then shows a password
  }
  const std::string caches = variables.text({"XDG_CACHE_HOME"}, home_folder(getter) + "/.cache");
  const std::string home = variables.path({"HF_HOME"}, caches + "/huggingface");
  settings.cache_dir = variables.path({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}, home + "/hub");
  RETURN_IF_ERROR(read_token(variables, home, settings));
  settings.ca_file = variables.text({"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}, "");
  const std::string offline = variables.first({"HF_HUB_OFFLINE"}) ? "HF_HUB_OFFLINE" : "TRANSFORMERS_OFFLINE";
  if (variables.is_on(offline.c_str())) settings.offline_by = offline;
  settings.is_quiet = variables.is_on("HF_HUB_DISABLE_PROGRESS_BARS");
  RETURN_IF_ERROR(read_seconds(variables, "HF_HUB_ETAG_TIMEOUT", settings.head_timeout));
  RETURN_IF_ERROR(read_seconds(variables, "HF_HUB_DOWNLOAD_TIMEOUT", settings.stall_timeout));
  return settings;
}

StatusOr<HubSettings> HubSettings::from_environment() {
  return from([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

Status HubSettings::use_token(std::string_view text, const std::string& from) {
  token = clean_token(text);
  token_from = from;
  for (const char c : token) {
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7F) {
      return invalid_argument(from, ": the token holds a space, a control character or no ASCII");
    }
  }
  return ok_status();
}

void HubSettings::make_cache_dir_absolute() {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(cache_dir, error);  // fails for ""
  if (error) return;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(absolute, error);
  if (!error && !whole.empty()) cache_dir = whole.string();
  while (cache_dir.size() > 1 && cache_dir.ends_with('/')) cache_dir.pop_back();
}

}  // namespace transept
