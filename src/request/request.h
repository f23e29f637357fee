// A request as written: one JSON object (a JSONL line of `generate`, later an HTTP body) becomes a ParsedRequest. What
// each field is, its range and its error text come from the one table in field_table.h; what is left out stays empty
// here and is filled in by resolve.h. Values and pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "core/prompt.h"
#include "core/sampling_params.h"

namespace transept {

// The sampling fields that a request gave. Empty: absent or null. Ranges hold; token ids are not negative, but not yet
// compared with a vocabulary (resolve does).
struct RequestOverrides {
  std::optional<int32_t> max_tokens, min_tokens;
  std::optional<int32_t> n, num_return_sequences, best_of;
  std::optional<float> temperature, top_p, min_p;
  std::optional<int32_t> top_k;  // 0 and -1: all
  std::optional<int64_t> seed;

  std::optional<std::vector<std::string>> stop;
  std::optional<std::vector<int32_t>> stop_token_ids;
  std::optional<bool> ignore_eos, include_stop_str_in_output, skip_special_tokens;

  std::optional<int32_t> logprobs, prompt_logprobs;
  std::optional<bool> return_alignments;

  std::optional<float> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int32_t> no_repeat_ngram_size, encoder_no_repeat_ngram_size;
  std::optional<std::map<int32_t, float>> logit_bias;
  std::optional<std::vector<std::vector<int32_t>>> bad_words_ids;
  std::optional<std::vector<int32_t>> suppress_tokens, begin_suppress_tokens, allowed_token_ids;
  std::optional<int32_t> forced_bos_token_id;
  std::optional<std::vector<int32_t>> forced_eos_token_ids;  // the field forced_eos_token_id: one id or a list

  std::optional<bool> use_beam_search;
  std::optional<int32_t> num_beams;
  std::optional<float> length_penalty;
  std::optional<SamplingParams::EarlyStopping> early_stopping;
};

// What a request says about the tokenising of its prompts.
struct PromptOptions {
  std::optional<bool> add_special_tokens;
  std::optional<int32_t> truncate_prompt_tokens;  // keep the last k encoder ids; > 0
  std::optional<std::string> source_lang, target_lang;
  std::optional<std::string> language, task;  // of a transcript
  std::optional<bool> timestamps;
  // Words that must not be generated: the prompt processor tokenises them (SEMANTICS.md) and appends the ids to
  // SamplingParams::bad_words_ids. None is empty.
  std::optional<std::vector<std::string>> bad_words;
};

struct ParsedRequest {
  Json id;  // a string or a number
  EncoderDecoderPrompt prompt;
  RequestOverrides sampling;
  PromptOptions prompt_options;
  std::optional<bool> stream;         // true is refused for now: request_fields() says why
  std::vector<std::string> warnings;  // fields that nothing knows, each with the nearest known name
};

// The id of a request, for its result or its error: `line`'s own where it is a string or a number, else `fallback`.
Json request_id(const Json& line, const Json& fallback);

// Reads one request. `fallback_id` (the caller's line number) is its id where it names none. null means absent for
// every field; whole numbers may be written 3.0.
// Errors name the field (error_param is its exact name: "stop", not "stop[0]"): kInvalidArgument for a wrong type or
// value, kUnimplemented for a field that is known and not supported. Unknown fields are warnings.
StatusOr<ParsedRequest> parse_request(const Json& line, const Json& fallback_id);

// Token ids of a prompt against the vocabulary: the first one outside is an error that names the part of the prompt.
// vocab_size 0: unknown, nothing is checked.
Status check_token_ids(const EncoderDecoderPrompt& prompt, int64_t vocab_size);

}  // namespace transept
