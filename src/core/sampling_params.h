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
  std::optional<int32_t> forced_bos_token_id;
  std::vector<int32_t> forced_eos_token_ids;
  bool renormalize_logits = false;

  int32_t num_beams = 1;  // above 1: beam search, and temperature, filters and best_of play no part
  float length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::kFalse;

  bool return_alignments = false;  // for every generated token the encoder position that it attends to most
  bool score_only = false;         // --score: prompt_logprobs and their sum instead of generating

  // Sequences that one request comes to: its beams, or its samples.
  int32_t num_seqs() const { return num_beams > 1 ? num_beams : std::max({n, best_of, 1}); }

  bool operator==(const SamplingParams&) const = default;
};

}  // namespace transept
