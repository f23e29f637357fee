// A request as written: one JSON object (a JSONL line of `generate`, later an HTTP body) becomes a ParsedRequest. What
// each field is, its range and its error text come from the one table in field_table.h; what is left out stays empty
// here and is filled in by resolve.h. Values and pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "core/prompt.h"
#include "core/sampling_params.h"

namespace transept {

// Limits of API.md, which `serve` has flags for.
inline constexpr int32_t kMaxOutputs = 16;
inline constexpr int32_t kMaxBeams = 64;
inline constexpr int32_t kMaxLogprobs = 20;
inline constexpr int32_t kMaxStopStrings = 4;
inline constexpr int32_t kMaxBadWords = 128;

struct RequestLimits {
  int32_t max_outputs = kMaxOutputs;
  int32_t max_beams = kMaxBeams;
  int32_t max_logprobs = kMaxLogprobs;
  int32_t max_stop_strings = kMaxStopStrings;
  int32_t max_bad_words = kMaxBadWords;
};

// What may carry a field: a set of these.
using FieldRoutes = uint16_t;
namespace field_routes {
inline constexpr FieldRoutes kJsonLines = 1;  // a line of `generate`
inline constexpr FieldRoutes kCompletions = 2, kScore = 4, kTranslate = 8, kTranscriptions = 16;
inline constexpr FieldRoutes kAudioTranslations = 32, kTokenize = 64, kDetokenize = 128;
inline constexpr FieldRoutes kAudio = kTranscriptions | kAudioTranslations;
inline constexpr FieldRoutes kGeneration = kJsonLines | kCompletions | kScore | kTranslate;
inline constexpr FieldRoutes kPrompted = kJsonLines | kCompletions | kScore;
inline constexpr FieldRoutes kHttp = kCompletions | kScore | kTranslate | kAudio | kTokenize | kDetokenize;
}  // namespace field_routes

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

// What HTTP bodies have besides.
struct BodyFields {
  std::optional<std::string> model;
  std::optional<bool> echo;
  std::optional<bool> include_usage, include_progress;  // of stream_options
  std::optional<std::vector<std::string>> texts;        // of a translation
  std::optional<std::string> text;                      // to be tokenised; before a transcript
  std::optional<std::string> side;
  std::optional<bool> return_token_strs;
  std::optional<std::vector<int32_t>> tokens;
  std::optional<std::string> response_format;
  std::optional<std::vector<std::string>> timestamp_granularities;
  bool cuts_at_pauses = false;  // chunking_strategy
  std::optional<bool> vad_filter, word_timestamps;
  std::optional<std::string> hotwords;
  std::optional<int32_t> beam_size;  // num_beams of a transcription
};

struct ParsedRequest {
  Json id;  // a string or a number
  EncoderDecoderPrompt prompt;
  RequestOverrides sampling;
  PromptOptions prompt_options;
  BodyFields body;
  std::optional<bool> stream;
  int32_t num_unknown_fields = 0;
  std::vector<std::string> warnings;  // fields that nothing knows, each with the nearest known name
};

// The id of a request, for its result or its error: `line`'s own where it is a string or a number, else `fallback`.
Json request_id(const Json& line, const Json& fallback);

// Reads one request. `fallback_id` (the caller's line number) is its id where it names none. null means absent for
// every field; whole numbers may be written 3.0.
// Errors name the field (error_param is its exact name: "stop", not "stop[0]"): kInvalidArgument for a wrong type or
// value, kUnimplemented for a field that is known and not supported. Unknown fields are warnings.
StatusOr<ParsedRequest> parse_request(const Json& line, const Json& fallback_id);

// One body of a POST: the fields that `route` (one of field_routes) knows. Its prompts are left to read_prompts, files
// of forms to the caller. Errors: as parse_request; a field that is required and missing.
StatusOr<ParsedRequest> parse_body(const Json& body, FieldRoutes route, const RequestLimits& limits);

// The prompts of a body: one, or a list of at most max_prompts, with a decoder_prompt for all or a list of as many. A
// list of ids alone is one prompt. Errors name the field, and the place in the list: "prompt[1]: ...".
StatusOr<std::vector<EncoderDecoderPrompt>> read_prompts(const Json& body, size_t max_prompts,
                                                         std::vector<std::string>& warnings);

// The name that a field has in a form: "timestamp_granularities[]" is timestamp_granularities, "a[b]" is a.
std::string_view form_field_name(std::string_view name);

// Values of a form, all strings, as JSON of the kinds that the fields of `route` have; in the order they came. Empty
// values of all but texts are absent. What cannot be read as its field's kind stays a string: parse_body refuses it.
Json form_to_json(const std::vector<std::pair<std::string, std::string>>& values, FieldRoutes route);

// Token ids of a prompt against the vocabulary: the first one outside is an error that names the part of the prompt.
// vocab_size 0: unknown, nothing is checked.
Status check_token_ids(const EncoderDecoderPrompt& prompt, int64_t vocab_size);

}  // namespace transept
