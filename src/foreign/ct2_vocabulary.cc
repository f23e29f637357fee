#include "foreign/ct2_vocabulary.h"

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace transept {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr size_t kMaxTokens = 2'000'000;

StatusOr<std::vector<std::string>> tokens_of_json(const std::string& text) {
  ASSIGN_OR_RETURN(const Json json, Json::parse(text, {.max_bytes = kMaxBytes}));
  if (!json.is_array()) return invalid_argument("expected a list");
  std::vector<std::string> tokens;
  for (const Json& token : json.as_array()) {
    if (!token.is_string()) return invalid_argument("token ", tokens.size(), ": expected a string");
    tokens.push_back(token.as_string());
  }
  return tokens;
}

std::vector<std::string> tokens_of_lines(std::string_view text) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    tokens.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return tokens;
}

}  // namespace

StatusOr<Ct2Vocabulary> Ct2Vocabulary::read(const ModelFolder& folder, std::initializer_list<std::string_view> names) {
  std::string tried;
  for (const std::string_view name : names) {
    for (const std::string_view ending : {".json", ".txt"}) {
      const std::string file = str_cat(name, ending);
      tried += str_cat(tried.empty() ? "" : ", ", file);
      if (!folder.has(file)) continue;
      Ct2Vocabulary vocabulary;
      vocabulary.file_ = folder.name_of(file);
      ASSIGN_OR_RETURN(const std::string text, folder.read(file, kMaxBytes));
      StatusOr<std::vector<std::string>> tokens =
          ending == ".json" ? tokens_of_json(text) : StatusOr<std::vector<std::string>>(tokens_of_lines(text));
      if (!tokens.ok()) return with_prefix(tokens.status(), vocabulary.file_);
      vocabulary.tokens_ = std::move(tokens).value();
      if (vocabulary.tokens_.size() > kMaxTokens) {
        return invalid_argument(vocabulary.file_, ": more than the ", kMaxTokens, " tokens allowed");
      }
      for (size_t id = 0; id < vocabulary.tokens_.size(); ++id) {
        vocabulary.ids_.try_emplace(vocabulary.tokens_[id], static_cast<int64_t>(id));
      }
      return vocabulary;
    }
  }
  return not_found(folder.path(), ": has no tokens; one of ", tried, " is expected");
}

std::optional<int64_t> Ct2Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace transept
