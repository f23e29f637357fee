#include "foreign/marian_vocabulary.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/quoted.h"
#include "base/utf8.h"
#include "text/sentencepiece/sentencepiece.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = size_t{256} << 20, kMaxTokens = 2'000'000;
constexpr std::string_view kEnd = "</s>", kPad = "<pad>";

using Pairs = std::vector<std::pair<std::string, int64_t>>;

StatusOr<Pairs> pairs_of_json(const std::string& text) {
  ASSIGN_OR_RETURN(const Json json, Json::parse(text, {.max_bytes = kMaxBytes}));
  if (!json.is_object()) return invalid_argument("expected {token: id}");
  Pairs pairs;
  for (const auto& [token, id] : json.as_object()) {
    if (!id.is_int()) return invalid_argument("token ", in_quotes(token), ": its id is no whole number");
    pairs.emplace_back(token, id.as_int());
  }
  return pairs;
}

StatusOr<Pairs> pairs_of_yaml(const std::string& text) {
  ASSIGN_OR_RETURN(YamlMap map, parse_yaml_map(text));
  Pairs pairs;
  pairs.reserve(map.size());
  for (auto& [token, value] : map) {
    int64_t id = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [at, error] = std::from_chars(value.text.data(), end, id);
    if (value.is_list || error != std::errc() || at != end) {
      return invalid_argument("token ", in_quotes(token), ": its id is no whole number");
    }
    pairs.emplace_back(std::move(token), id);
  }
  return pairs;
}

Pairs pairs_of_lines(std::string_view text) {
  Pairs pairs;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    pairs.emplace_back(line, std::ssize(pairs));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pairs;
}

StatusOr<Pairs> pairs_of_sentencepiece(std::string_view file, const std::string& bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<SentencePieceModel> model, SentencePieceModel::parse(file, bytes));
  Pairs pairs;
  for (int32_t id = 0; id < model->num_pieces(); ++id) pairs.emplace_back(model->piece(id), id);
  return pairs;
}

// Which side a file's name is of, by its parts between dots, hyphens and underlines.
enum class Side : uint8_t { kBoth, kSource, kTarget };
Side side_of(std::string name) {
  for (char& c : name) {
    if (c == '-' || c == '_') c = '.';
  }
  Side side = Side::kBoth;
  for (const std::string_view part : split(name, '.')) {
    if (part == "src" || part == "source") side = Side::kSource;
    if (part == "trg" || part == "tgt" || part == "target") side = Side::kTarget;
  }
  return side;
}

bool is_vocabulary_name(const fs::path& path) {
  constexpr std::string_view kEndings[] = {".yml", ".yaml", ".json", ".spm", ".fsv", ".txt"};
  const std::string ending = path.extension().string();
  return std::ranges::find(kEndings, ending) != std::end(kEndings) &&
         path.filename().string().find("vocab") != std::string::npos;
}

std::vector<std::string> names_of_vocabularies(const std::string& dir) {
  constexpr size_t kMaxFiles = 10'000;
  std::vector<std::string> names;
  std::error_code error;
  size_t count = 0;
  for (fs::directory_iterator at(dir, error), end; !error && at != end && count < kMaxFiles; at.increment(error)) {
    ++count;
    std::error_code ignored;
    if (is_vocabulary_name(at->path()) && fs::is_regular_file(at->path(), ignored)) {
      names.push_back(at->path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

StatusOr<MarianVocabulary> MarianVocabulary::read(const ModelFolder& folder, std::string_view name, int64_t rows) {
  MarianVocabulary vocabulary;
  vocabulary.file_ = folder.name_of(name);
  const std::string& file = vocabulary.file_;
  if (name.ends_with(".fsv")) return unimplemented(file, ": factored vocabularies are not supported");
  ASSIGN_OR_RETURN(std::string text, folder.read(name, kMaxBytes));
  const bool is_model = name.ends_with(".spm");
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && text[first] == '{';
  StatusOr<Pairs> pairs = is_model                 ? pairs_of_sentencepiece(file, text)
                          : is_json                ? pairs_of_json(text)
                          : name.ends_with(".txt") ? StatusOr<Pairs>(pairs_of_lines(text))
                                                   : pairs_of_yaml(text);
  if (!pairs.ok()) return is_model ? pairs.status() : with_prefix(pairs.status(), file);
  if (pairs->size() > kMaxTokens) return invalid_argument(file, ": more than the ", kMaxTokens, " tokens allowed");
  constexpr int64_t kMaxId = 10'000'000;
  if (rows > kMaxId) return invalid_argument(file, ": ", rows, " rows are over the ", kMaxId, " allowed");
  std::vector<bool> is_taken(static_cast<size_t>(rows));
  vocabulary.tokens_.resize(static_cast<size_t>(rows));
  for (auto& [token, id] : *pairs) {
    if (id < 0) return invalid_argument(file, ": token ", in_quotes(token), ": its id is negative");
    if (id >= rows) continue;
    if (!is_valid_utf8(token)) return invalid_argument(file, ": token ", id, " is no UTF-8");
    if (is_taken[static_cast<size_t>(id)]) return invalid_argument(file, ": two tokens have the id ", id);
    is_taken[static_cast<size_t>(id)] = true;
    vocabulary.ids_.try_emplace(token, id);
    vocabulary.tokens_[static_cast<size_t>(id)] = std::move(token);
  }
  if (const auto free = std::ranges::find(is_taken, false); free != is_taken.end()) {
    return invalid_argument(file, ": has no token of id ", free - is_taken.begin(), ", but the model has ", rows);
  }
  if (!vocabulary.find(kEnd).has_value()) return invalid_argument(file, ": has no token ", in_quotes(kEnd));
  if (is_model) vocabulary.sentencepiece_ = std::move(text);
  return vocabulary;
}

std::optional<int64_t> MarianVocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

Json MarianVocabulary::with_pad() const {
  Json::Object ids;
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (find(tokens_[id]) == static_cast<int64_t>(id)) ids.emplace_back(tokens_[id], Json(static_cast<int64_t>(id)));
  }
  if (!find(kPad).has_value()) ids.emplace_back(std::string(kPad), Json(std::ssize(tokens_)));
  return Json(std::move(ids));
}

StatusOr<MarianVocabularyFiles> find_marian_vocabularies(const std::string& dir, const YamlMap& settings) {
  const YamlValue* vocabs = find_yaml(settings, "vocabs");
  if (vocabs != nullptr && !vocabs->list.empty() && vocabs->list.size() <= 2) {
    MarianVocabularyFiles files = {fs::path(vocabs->list.front()).filename().string(),
                                   fs::path(vocabs->list.back()).filename().string()};
    std::error_code ignored;
    const bool are_there = fs::is_regular_file(fs::path(dir) / files.source, ignored) &&
                           fs::is_regular_file(fs::path(dir) / files.target, ignored);
    if (are_there) return files;
  }
  const std::vector<std::string> names = names_of_vocabularies(dir);
  std::vector<std::string> of_side[3];
  for (const std::string& name : names) of_side[static_cast<size_t>(side_of(name))].push_back(name);
  const auto& [both, source, target] = of_side;
  if (both.size() == 1 && source.empty() && target.empty()) return MarianVocabularyFiles{both[0], both[0]};
  if (both.empty() && source.size() == 1 && target.size() == 1) return MarianVocabularyFiles{source[0], target[0]};
  if (names.empty()) {
    return not_found(dir, ": has no vocabulary of a Marian model: a file vocab.yml, vocab.spm or the like is expected");
  }
  return invalid_argument(dir, ": which of ", join(names, ", "),
                          " are the model's vocabularies? `vocabs` of a file decoder.yml would say it");
}

}  // namespace transept
