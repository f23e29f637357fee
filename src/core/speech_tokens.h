// The special tokens of a transcribing model (Whisper), from generation_config.json. For those that the file lacks
// (older and fine-tuned checkpoints), the tokenizer's tokens of the known spellings. A value: its const functions are
// thread-safe.
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

  std::vector<Language> languages;  // ascending by id; empty: the model knows only English, and its prompt names none
  std::optional<int32_t> transcribe, translate;
  std::optional<int32_t> no_timestamps;      // the ids after it are timestamps, 0.02 s apart
  std::optional<int32_t> start_of_previous;  // <|startofprev|>: begins the text before this window
  std::optional<int32_t> no_speech;
  std::optional<int32_t> max_initial_timestamp_index;
  std::optional<std::string> default_language, default_task;  // as the file has them; not checked

  // Returns the first timestamp, 0.00 s. None: the model has no timestamps.
  std::optional<int32_t> timestamp_begin() const {
    return no_timestamps.has_value() ? std::optional(*no_timestamps + 1) : std::nullopt;
  }

  // For SamplingParams. REQUIRES: no_timestamps has a value.
  TimestampRules rules(int32_t eos_token_id) const;

  // Returns the token of a language, by code or English name. None: the model knows only English, and `language` is
  // English. Errors: kInvalidArgument (`field`): a language that the model does not know; the message lists the others.
  StatusOr<std::optional<int32_t>> language_token(std::string_view language, std::string_view field) const;
  // Returns the code of a language's token; "": the token is no language.
  std::string_view language_of(int32_t token_id) const;
  // Returns the token of "transcribe" or "translate". None: "transcribe" by a model that has no token for it. Errors:
  // kInvalidArgument (`field`): another word; "translate" by a model that does not translate.
  StatusOr<std::optional<int32_t>> task_token(std::string_view task, std::string_view field) const;

  // Reads `generation.raw`; `token_id` finds a token of the tokenizer by its spelling. Errors: kInvalidArgument, naming
  // generation.source and the field: a value of the wrong type, an id outside the vocabulary.
  using TokenId = FunctionRef<std::optional<int32_t>(std::string_view)>;
  static StatusOr<SpeechTokens> load(const ModelConfig& config, const GenerationConfig& generation, TokenId token_id);
};

}  // namespace transept
