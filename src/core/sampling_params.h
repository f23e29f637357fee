// What a request asks of decoding: vLLM's SamplingParams with Hugging Face's generation fields. A value. Ranges are
// checked where requests are read (request/); the meaning of each field stands in docs/api.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace transept {

// Whisper's rules for the tokens that are points in time (openai-whisper's ApplyTimestampRules, transformers'
// WhisperTimeStampLogitsProcessor; sampling/timestamp_rules.h says what they are). The vocabulary's order is: text, end
// token, other special tokens, <|notimestamps|>, timestamps.
struct TimestampRules {
  int32_t timestamp_begin = 0;                         // it and all ids above are timestamps
  int32_t no_timestamps_token_id = 0;                  // never generated
  int32_t eos_token_id = 0;                            // ids below are text
  std::optional<int32_t> max_initial_timestamp_index;  // the first timestamp is at most timestamp_begin + this

  bool operator==(const TimestampRules&) const = default;
};

// One token at one place of the decoder prompt, of which the raw probability is wanted.
struct PromptProbe {
  int32_t prompt_index = 0;  // the token's probability after prompt tokens [0, prompt_index]
  int32_t token_id = 0;

  bool operator==(const PromptProbe&) const = default;
};

struct SamplingParams {
  enum class EarlyStopping : uint8_t { kFalse, kTrue, kNever };

  int32_t max_tokens = 0;             // generated tokens at most; > 0 once resolved
  int32_t min_tokens = 0;             // stop ids are forbidden before, and stop strings not looked for
  int32_t min_tokens_before_eos = 0;  // end tokens are forbidden before: min_tokens, or the model's own min_length
  int32_t n = 1;                      // outputs
  int32_t best_of = 1;                // sampled answers of which the n best are returned; below n: n. Not for beams
  float temperature = 0;              // 0: greedy
  int32_t top_k = 0;                  // 0: all
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;  // resolved: the request's own, or drawn from the engine's seed

  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  std::vector<int32_t> eos_token_ids;  // of the model
  bool ignore_eos = false;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;

  std::optional<int32_t> logprobs;         // the k best and the chosen one; 0: the chosen one only
  std::optional<int32_t> prompt_logprobs;  // the same over the decoder prompt, from the raw distribution

  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  int32_t no_repeat_ngram_size = 0;
  int32_t encoder_no_repeat_ngram_size = 0;
  std::map<int32_t, float> logit_bias;
  std::vector<std::vector<int32_t>> bad_words_ids;  // bad_words tokenised, and the model's own
  std::vector<int32_t> suppress_tokens;
  std::vector<int32_t> begin_suppress_tokens;
  std::vector<int32_t> allowed_token_ids;  // ascending, distinct; others come only if forced. Empty: all are allowed
  std::optional<TimestampRules> timestamp_rules;  // after every ban, before forced tokens
  std::optional<int32_t> forced_bos_token_id;
  std::vector<int32_t> forced_eos_token_ids;
  bool renormalize_logits = false;

  int32_t num_beams = 1;  // above 1: beam search, and temperature, filters and best_of play no part
  float length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::kFalse;
  // Set: openai-whisper's beam search instead of Hugging Face's (sampling/beam_search.h), which goes on until
  // round(num_beams * patience) answers have ended; length_penalty and early_stopping play no part. Answers are ranked
  // by their sum over their length, or over ((5 + length) / 6) ^ patience_length_penalty where that is set.
  std::optional<double> patience;
  std::optional<double> patience_length_penalty;

  bool return_alignments = false;  // for every generated token the encoder position that it attends to most
  bool score_only = false;         // --score: prompt_logprobs and their sum instead of generating

  // Of callers inside the program, which no request can ask for.
  bool skip_cumulative_logprob = false;  // it is 0 then, unless logprobs, best_of or beams need it anyway
  int32_t prompt_logprobs_vocab = 0;     // > 0: prompt_logprobs are a distribution over the ids below it alone
  std::optional<PromptProbe> probe;      // RequestOutput::probe_logprob is wanted
  bool capture_cross_attention = false;  // RequestOutput::cross_attention is wanted
  bool capture_encoder_output = false;   // RequestOutput::encoder_output is wanted

  // Sequences that one request comes to: its beams, or its samples.
  int32_t num_seqs() const { return num_beams > 1 ? num_beams : std::max({n, best_of, 1}); }

  bool operator==(const SamplingParams&) const = default;
};

}  // namespace transept
