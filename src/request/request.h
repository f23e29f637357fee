// Parses a request as written: one JSON object (a JSONL line of `generate`, or an HTTP body) becomes a ParsedRequest.
// The kind, range and error text of each field come from the table in field_table.h. Absent fields stay empty here;
// resolve.h fills in the defaults. Values and pure functions: thread-safe.
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
#include "core/prompt_options.h"
#include "core/sampling_params.h"

namespace transept {

// Default limits; `serve` has a flag for each (--max-n, --max-stop-strings, ...).
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

// The routes that may carry a field: a set of bits.
using FieldRoutes = uint16_t;
namespace field_routes {
inline constexpr FieldRoutes kJsonLines = 1;  // a line of `generate`
inline constexpr FieldRoutes kCompletions = 2, kScore = 4, kTranslate = 8, kTranscriptions = 16;
inline constexpr FieldRoutes kAudioTranslations = 32, kTokenize = 64, kDetokenize = 128, kEncode = 256, kChat = 512;
inline constexpr FieldRoutes kAudio = kTranscriptions | kAudioTranslations;
inline constexpr FieldRoutes kAnswers = kCompletions | kChat;
inline constexpr FieldRoutes kPlainGeneration = kJsonLines | kCompletions | kScore | kTranslate;
inline constexpr FieldRoutes kGeneration = kPlainGeneration | kChat;
inline constexpr FieldRoutes kEncoderPrompt = kGeneration | kEncode;
inline constexpr FieldRoutes kPrompted = kJsonLines | kCompletions | kScore;
inline constexpr FieldRoutes kHttp =
    kCompletions | kScore | kTranslate | kAudio | kTokenize | kDetokenize | kEncode | kChat;
}  // namespace field_routes

// The sampling fields that a request gave. Empty: absent or null. Values are in range. Token ids are not negative;
// resolve() checks them against the vocabulary.
struct RequestOverrides {
  std::optional<int32_t> max_tokens, min_tokens;
  std::optional<int32_t> n, num_return_sequences, best_of;
  std::optional<float> temperature, top_p, min_p;
  std::optional<int32_t> top_k;  // 0 and -1: all
  std::optional<int64_t> seed;

  std::optional<std::vector<std::string>> stop;
  std::optional<std::vector<int32_t>> stop_token_ids;
  std::optional<bool> ignore_eos, include_stop_str_in_output, skip_special_tokens;

  std::optional<std::vector<int32_t>> draft_token_ids;

  std::optional<int32_t> logprobs, prompt_logprobs;
  std::optional<bool> return_alignments;

  std::optional<float> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int32_t> no_repeat_ngram_size, encoder_no_repeat_ngram_size;
  std::optional<std::map<int32_t, float>> logit_bias;
  std::optional<std::vector<std::vector<int32_t>>> bad_words_ids;
  std::optional<std::vector<int32_t>> suppress_tokens, begin_suppress_tokens, allowed_token_ids;
  std::optional<int32_t> forced_bos_token_id;
  std::optional<std::vector<int32_t>> forced_eos_token_ids;  // the field forced_eos_token_id: an id or a list

  std::optional<bool> use_beam_search;
  std::optional<int32_t> num_beams;
  std::optional<float> length_penalty;
  std::optional<SamplingParams::EarlyStopping> early_stopping;
};

// Fields of HTTP bodies alone.
struct BodyFields {
  std::optional<std::string> model;
  std::optional<bool> echo;
  std::optional<bool> include_usage, include_progress;  // of stream_options
  std::optional<std::vector<std::string>> texts;        // `text` of a translation
  std::optional<std::string> text;                      // `prompt` of tokenize and of a transcription
  std::optional<std::string> side;
  std::optional<bool> return_token_strs;
  std::optional<std::vector<int32_t>> tokens;
  std::optional<std::string> response_format;
  std::optional<std::vector<std::string>> timestamp_granularities;
  bool cuts_at_pauses = false;  // chunking_strategy is present, and not null
  std::optional<bool> vad_filter, word_timestamps;
  std::optional<std::string> hotwords;
  std::optional<bool> condition_on_previous_text;   // of a transcription; this and the next two
  std::optional<float> patience;                    // of its beams
  std::optional<int32_t> beam_size;                 // another name of num_beams
  std::optional<std::string> request_id, consumer;  // of an encode; this and the next
  std::optional<int32_t> attempt;
  std::optional<float> timeout;       // seconds
  std::optional<bool> with_logprobs;  // `logprobs` of a chat; this and the next two
  std::optional<int32_t> top_logprobs;
  std::optional<int32_t> max_completion_tokens;  // another name of max_tokens
};

struct ParsedRequest {
  Json id;                      // a string or a number; parse_body leaves it null
  EncoderDecoderPrompt prompt;  // parse_body leaves it empty
  RequestOverrides sampling;
  PromptOptions prompt_options;
  BodyFields body;
  std::optional<bool> stream;
  std::optional<bool> return_structured;  // CompletionOutput::structured
  std::optional<std::string> cache_salt;  // EncoderDecoderInputs::cache_salt
  int32_t num_unknown_fields = 0;
  std::vector<std::string> warnings;  // unknown fields, each with the nearest known name if one is near; at most 20
};

// Returns the id for a result or an error: the id of `line` if that is a string or a number, else `fallback`.
Json request_id(const Json& line, const Json& fallback);

// Parses one JSON line. The request's id is its own, else `fallback_id` (the caller's line number). A field that is
// null counts as absent; whole numbers may be written 3.0. Unknown fields give warnings, not errors.
// Errors: kInvalidArgument for a line that is no object, and for a wrong type or value; kUnimplemented for a field that
// is known and not supported. error_param is the exact name of the field: "stop", not "stop[0]".
StatusOr<ParsedRequest> parse_request(const Json& line, const Json& fallback_id);

// Parses the body of a POST: the fields that `route` (one of field_routes) has, within `limits`. read_prompts reads the
// prompts; the caller reads the files of forms. Errors: as parse_request; also kInvalidArgument for a missing required
// field. error_param of a member is its path: "stream_options.include_usage".
StatusOr<ParsedRequest> parse_body(const Json& body, FieldRoutes route, const RequestLimits& limits);

// Reads the prompts of a body: one, or a list of at most max_prompts. decoder_prompt is one for all, or a list of the
// same length. A list of ids is one prompt. Appends to `warnings` as read_prompt does. Errors (kInvalidArgument) name
// the field, and in a list the place too, also in error_param: "prompt[1]".
StatusOr<std::vector<EncoderDecoderPrompt>> read_prompts(const Json& body, size_t max_prompts,
                                                         std::vector<std::string>& warnings);

// Strips the brackets from the name of a form field: "timestamp_granularities[]" gives timestamp_granularities, and
// "a[b]" gives a.
std::string_view form_field_name(std::string_view name);

// Converts the values of a form, all strings, to a JSON object with the kinds of the fields of `route`. Repeated values
// of a list field are collected in order; of other fields the last value counts. Empty values are absent, except those
// of kText and of unknown fields. A value that does not parse as its field's kind stays a string, which parse_body
// refuses.
Json form_to_json(const std::vector<std::pair<std::string, std::string>>& values, FieldRoutes route);

// Checks the token ids of a prompt against the vocabulary. Errors: kInvalidArgument for the first id outside it, naming
// the part of the prompt. vocab_size 0 means unknown: no check.
Status check_token_ids(const EncoderDecoderPrompt& prompt, int64_t vocab_size);

}  // namespace transept
