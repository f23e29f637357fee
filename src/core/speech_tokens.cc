#include "core/speech_tokens.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/quoted.h"
#include "base/strings.h"
#include "core/speech_languages.h"

namespace transept {
namespace {

// The language of models that name none in their prompt (the .en ones).
constexpr std::string_view kOnlyLanguage = "en";
constexpr size_t kMaxLanguages = 10'000;
// Where no file says it: openai-whisper's own rule (model.py, is_multilingual).
constexpr int64_t kLeastMultilingualVocabulary = 51865;

// Reads generation_config.json's fields; ids must be in the vocabulary.
class Reader final {
 public:
  Reader(const ModelConfig& config, const GenerationConfig& generation)
      : reader_(generation.raw, str_cat(config.path, "/", generation.source)),
        object_(generation.raw),
        max_id_(config.decoder_vocab_size > 0 ? config.decoder_vocab_size - 1 : std::numeric_limits<int32_t>::max()) {}

  StatusOr<std::optional<int32_t>> id(std::string_view key) const {
    if (is_absent(key)) return std::optional<int32_t>();
    ASSIGN_OR_RETURN(const int64_t value, reader_.integer(key, 0, max_id_));
    return std::optional(static_cast<int32_t>(value));
  }

  StatusOr<std::optional<int32_t>> count(std::string_view key) const {
    if (is_absent(key)) return std::optional<int32_t>();
    ASSIGN_OR_RETURN(const int64_t value, reader_.integer(key, 0, std::numeric_limits<int32_t>::max()));
    return std::optional(static_cast<int32_t>(value));
  }

  StatusOr<std::optional<std::string>> text(std::string_view key) const {
    if (is_absent(key)) return std::optional<std::string>();
    ASSIGN_OR_RETURN(std::string value, reader_.string(key));
    return std::optional(std::move(value));
  }

  StatusOr<std::optional<bool>> boolean(std::string_view key) const {
    if (is_absent(key)) return std::optional<bool>();
    ASSIGN_OR_RETURN(const bool value, reader_.boolean(key, false));
    return std::optional(value);
  }

  int64_t max_id() const { return max_id_; }

  // A table of names -> ids; absent: empty.
  StatusOr<std::vector<std::pair<std::string, int32_t>>> ids(std::string_view key) const {
    std::vector<std::pair<std::string, int32_t>> out;
    if (is_absent(key)) return out;
    const Json& value = *object_.find(key);
    if (!value.is_object()) return reader_.error(key, "expected an object of token ids");
    if (value.as_object().size() > kMaxLanguages) return reader_.error(key, "too many entries");
    const ConfigReader entries(value, str_cat(reader_.file(), ": ", key));
    for (const auto& [name, id] : value.as_object()) {
      ASSIGN_OR_RETURN(const int64_t number, entries.integer(name, 0, max_id_));
      out.emplace_back(name, static_cast<int32_t>(number));
    }
    return out;
  }

 private:
  bool is_absent(std::string_view key) const {
    const Json* value = object_.find(key);
    return value == nullptr || value->is_null();
  }

  ConfigReader reader_;
  const Json& object_;
  int64_t max_id_;
};

std::optional<int32_t> first_of(std::initializer_list<std::string_view> spellings, SpeechTokens::TokenId token_id) {
  for (const std::string_view spelling : spellings) {
    if (const std::optional<int32_t> id = token_id(spelling); id.has_value()) return id;
  }
  return std::nullopt;
}

// Language tokens stand between the start and the translate token in every Whisper vocabulary, spelled <|xx|>.
void find_languages(SpeechTokens::TokenId token_id, SpeechTokens& tokens) {
  for (const std::string_view code : speech_language_codes()) {
    const std::optional<int32_t> id = token_id(str_cat("<|", code, "|>"));
    if (id.has_value()) tokens.languages.push_back({std::string(code), *id});
  }
}

}  // namespace

StatusOr<SpeechTokens> SpeechTokens::load(const ModelConfig& config, const GenerationConfig& generation,
                                          TokenId tokenizer_id) {
  const Reader reader(config, generation);
  // A tokenizer may know more tokens than the model has scores for.
  const auto token_id = [&](std::string_view spelling) {
    const std::optional<int32_t> id = tokenizer_id(spelling);
    return id.has_value() && *id >= 0 && *id <= reader.max_id() ? id : std::nullopt;
  };
  SpeechTokens tokens;
  ASSIGN_OR_RETURN(const auto languages, reader.ids("lang_to_id"));
  for (const auto& [name, id] : languages) tokens.languages.push_back({speech_language_code(name), id});
  ASSIGN_OR_RETURN(const auto tasks, reader.ids("task_to_id"));
  for (const auto& [name, id] : tasks) {
    if (name == "transcribe") tokens.transcribe = id;
    if (name == "translate") tokens.translate = id;
  }
  ASSIGN_OR_RETURN(tokens.no_timestamps, reader.id("no_timestamps_token_id"));
  ASSIGN_OR_RETURN(tokens.start_of_previous, reader.id("prev_sot_token_id"));
  ASSIGN_OR_RETURN(tokens.max_initial_timestamp_index, reader.count("max_initial_timestamp_index"));
  ASSIGN_OR_RETURN(tokens.default_language, reader.text("language"));
  ASSIGN_OR_RETURN(tokens.default_task, reader.text("task"));
  ASSIGN_OR_RETURN(const std::optional<bool> multilingual, reader.boolean("is_multilingual"));
  const bool english_only = multilingual.has_value() ? !*multilingual
                            : languages.empty()      ? config.decoder_vocab_size < kLeastMultilingualVocabulary
                                                     : false;

  if (!tokens.no_timestamps) tokens.no_timestamps = token_id("<|notimestamps|>");
  if (!tokens.start_of_previous) tokens.start_of_previous = token_id("<|startofprev|>");
  tokens.no_speech = first_of({"<|nospeech|>", "<|nocaptions|>"}, token_id);
  if (english_only) {
    // The .en vocabularies hold language and task tokens that nothing was trained with.
    tokens.languages.clear();
    tokens.transcribe = tokens.translate = std::nullopt;
  } else {
    if (!tokens.transcribe) tokens.transcribe = token_id("<|transcribe|>");
    if (!tokens.translate) tokens.translate = token_id("<|translate|>");
    if (tokens.languages.empty()) find_languages(token_id, tokens);
  }
  std::ranges::sort(tokens.languages, {}, &Language::token_id);
  const auto same = [](const Language& a, const Language& b) { return a.token_id == b.token_id; };
  tokens.languages.erase(std::unique(tokens.languages.begin(), tokens.languages.end(), same), tokens.languages.end());
  return tokens;
}

TimestampRules SpeechTokens::rules(int32_t eos_token_id) const {
  CHECK(no_timestamps.has_value(), "a model without timestamps");
  return {.timestamp_begin = *no_timestamps + 1,
          .no_timestamps_token_id = *no_timestamps,
          .eos_token_id = eos_token_id,
          .max_initial_timestamp_index = max_initial_timestamp_index};
}

StatusOr<std::optional<int32_t>> SpeechTokens::language_token(std::string_view language, std::string_view field) const {
  const std::string code = speech_language_code(language);
  if (languages.empty()) {
    if (code == kOnlyLanguage) return std::optional<int32_t>();
    return field_error(field, str_cat("language ", in_quotes(language), ": this model knows English alone"));
  }
  for (const Language& known : languages) {
    if (known.code == code) return std::optional(known.token_id);
  }
  std::string list;
  for (const Language& known : languages) list += str_cat(list.empty() ? "" : ", ", known.code);
  return field_error(field, str_cat("language ", in_quotes(language), " is unknown; this model knows ", list));
}

std::string_view SpeechTokens::language_of(int32_t token_id) const {
  for (const Language& known : languages) {
    if (known.token_id == token_id) return known.code;
  }
  return {};
}

StatusOr<std::optional<int32_t>> SpeechTokens::task_token(std::string_view task, std::string_view field) const {
  if (task == "transcribe") return transcribe;
  if (task != "translate") {
    return field_error(field, str_cat("task ", in_quotes(task), " is unknown; one of transcribe, translate"));
  }
  if (!translate.has_value()) return field_error(field, "this model transcribes only: it has no task to translate");
  return translate;
}

}  // namespace transept
