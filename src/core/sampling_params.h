// The decoding parameters of a request: vLLM's SamplingParams with Hugging Face's generation fields. A value. request/
// checks the ranges; docs/api.md defines the fields.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace transept {

// Whisper's rules for timestamp tokens (sampling/timestamp_rules.h). The vocabulary's order is: text, end token, other
// special tokens, <|notimestamps|>, timestamps.
struct TimestampRules {
  int32_t timestamp_begin = 0;                         // this id and all above are timestamps
  int32_t no_timestamps_token_id = 0;                  // never generated
  int32_t eos_token_id = 0;                            // ids below are text
  std::optional<int32_t> max_initial_timestamp_index;  // the first timestamp is at most timestamp_begin + this

  bool operator==(const TimestampRules&) const = default;
};

// Requests the raw log-probability of one token at one position of the decoder prompt.
struct PromptProbe {
  int32_t prompt_index = 0;  // the token follows prompt tokens [0, prompt_index]
  int32_t token_id = 0;

  bool operator==(const PromptProbe&) const = default;
};

struct SamplingParams {
  enum class EarlyStopping : uint8_t { kFalse, kTrue, kNever };

  int32_t max_tokens = 0;  // limit of generated tokens; > 0 once resolved
  // The first min_tokens tokens are no stop ids, and stop strings are searched for only after them.
  int32_t min_tokens = 0;
  int32_t min_tokens_before_eos = 0;  // the same for end tokens: min_tokens, or the model's own min_length
  int32_t n = 1;                      // answers to return
  int32_t best_of = 1;                // answers to sample; the n best are returned. Below n: n. Unused by beam search
  float temperature = 0;              // 0: greedy
  int32_t top_k = 0;                  // 0: all
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;  // once resolved: the request's own, or drawn from the engine's seed

  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  std::vector<int32_t> eos_token_ids;  // end tokens of the model
  bool ignore_eos = false;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;

  // The answer that the caller expects, or its beginning: guesses that save time where they are right, and never change
  // an answer. Not beside beams or score_only. Empty: none.
  std::vector<int32_t> draft_token_ids;

  std::optional<int32_t> logprobs;         // the k best tokens and the chosen one; 0: the chosen one only
  std::optional<int32_t> prompt_logprobs;  // the same for the decoder prompt, from the raw distribution

  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  int32_t no_repeat_ngram_size = 0;
  int32_t encoder_no_repeat_ngram_size = 0;
  std::map<int32_t, float> logit_bias;
  std::vector<std::vector<int32_t>> bad_words_ids;  // bad_words tokenised, and those of the model
  std::vector<int32_t> suppress_tokens;
  std::vector<int32_t> begin_suppress_tokens;
  std::vector<int32_t> allowed_token_ids;  // ascending, distinct; other ids only if forced. Empty: all are allowed
  // The last so many tokens of the decoder's prompt are the answer's beginning: timestamp_rules and the lengths of a
  // search with patience count them as generated.
  int32_t num_given_tokens = 0;
  std::optional<TimestampRules> timestamp_rules;  // applied after all bans, before forced tokens
  std::optional<int32_t> forced_bos_token_id;
  std::vector<int32_t> forced_eos_token_ids;
  bool renormalize_logits = false;

  int32_t num_beams = 1;  // > 1: beam search, which ignores temperature, top_k, top_p, min_p and best_of
  float length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::kFalse;
  // Set: the beam search of openai-whisper instead of Hugging Face's (sampling/beam_search.h). It continues until
  // round(num_beams * patience) answers have ended, and ignores length_penalty and early_stopping. An answer's score is
  // its sum of log-probabilities / length, or / ((5 + length) / 6) ^ patience_length_penalty if that is set.
  std::optional<double> patience;
  std::optional<double> patience_length_penalty;
  // Of the search with patience: a continuation that ends must be among the num_beams best, and all that end in the
  // last step are answers (CTranslate2). Otherwise it need only be better than the last one that goes on, and no more
  // than round(num_beams * patience) are (openai-whisper).
  bool patience_ends_by_rank = false;

  bool return_alignments = false;  // for each generated token the encoder position that it attends to most
  bool score_only = false;         // --score: prompt_logprobs and their sum, no generation

  // For callers inside the program; no request can set these.
  bool skip_cumulative_logprob = false;  // leaves it 0, unless logprobs, best_of or beams need it anyway
  int32_t prompt_logprobs_vocab = 0;     // > 0: prompt_logprobs are a distribution over the ids below this one
  std::optional<PromptProbe> probe;      // fills RequestOutput::probe_logprob
  bool capture_cross_attention = false;  // fills RequestOutput::cross_attention
  bool capture_encoder_output = false;   // fills RequestOutput::encoder_output

  // Sequences that the request runs: its beams, or its samples.
  int32_t num_seqs() const { return num_beams > 1 ? num_beams : std::max({n, best_of, 1}); }

  bool operator==(const SamplingParams&) const = default;
};

}  // namespace transept
