// What the files of a transcribing model (Whisper) say of its special tokens: generation_config.json, and where that is
// silent (older and fine-tuned checkpoints) the tokenizer's own spelling of them. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "core/generation_config.h"
#include "core/model_config.h"
#include "core/sampling_params.h"

namespace transept {

struct SpeechTokens {
  struct Language {
    std::string code;  // "en"
    int32_t token_id = 0;
  };

  std::vector<Language> languages;  // by id; empty: the model knows one language, and its prompt names none
  std::optional<int32_t> transcribe, translate;
  std::optional<int32_t> no_timestamps;      // timestamps begin behind it, 0.02 s a token
  std::optional<int32_t> start_of_previous;  // <|startofprev|>: the text before this window follows
  std::optional<int32_t> no_speech;
  std::optional<int32_t> max_initial_timestamp_index;
  std::optional<std::string> default_language, default_task;  // of generation_config.json

  // First timestamp, 0.00 s; none: the model has no timestamps.
  std::optional<int32_t> timestamp_begin() const {
    return no_timestamps.has_value() ? std::optional(*no_timestamps + 1) : std::nullopt;
  }

  // For SamplingParams. REQUIRES: no_timestamps has a value.
  TimestampRules rules(int32_t eos_token_id) const;

  // The language's token, by code or English name; none, for a model of one language that is this one. Errors, under
  // `field`'s name: a language that the model does not know (lists those it does).
  StatusOr<std::optional<int32_t>> language_token(std::string_view language, std::string_view field) const;
  // "" for an id that is no language.
  std::string_view language_of(int32_t token_id) const;
  // "transcribe" or "translate". None: a model that only transcribes, and needs no token for it. Errors, under
  // `field`'s name: another word; a translation by a model that has none.
  StatusOr<std::optional<int32_t>> task_token(std::string_view task, std::string_view field) const;

  // `token_id` finds a token by its spelling. Errors name generation_config.json and the field: of the wrong type,
  // outside the vocabulary.
  using TokenId = FunctionRef<std::optional<int32_t>(std::string_view)>;
  static StatusOr<SpeechTokens> load(const ModelConfig& config, const GenerationConfig& generation, TokenId token_id);
};

}  // namespace transept
