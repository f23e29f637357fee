// Decoding defaults from the model's files: generation_config.json, or config.json's legacy keys where there is none
// (SEMANTICS.md, Where values come from).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/model_config.h"
#include "core/sampling_params.h"

namespace transept {

struct GenerationConfig {
  std::optional<int32_t> max_length, min_length;          // with the decoder prompt
  std::optional<int32_t> max_new_tokens, min_new_tokens;  // without
  bool do_sample = false;
  float temperature = 1;
  int32_t top_k = 0;  // 0: all. Where do_sample stands and no top_k, Hugging Face's 50
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  int32_t no_repeat_ngram_size = 0;
  int32_t encoder_no_repeat_ngram_size = 0;
  int32_t num_beams = 1;
  int32_t num_return_sequences = 1;
  float length_penalty = 1;
  SamplingParams::EarlyStopping early_stopping = SamplingParams::EarlyStopping::kFalse;
  std::optional<int32_t> forced_bos_token_id;
  std::vector<int32_t> forced_eos_token_ids;
  std::vector<int32_t> suppress_tokens, begin_suppress_tokens;
  std::vector<std::vector<int32_t>> bad_words_ids;
  bool renormalize_logits = false;
  std::vector<int32_t> eos_token_ids;
  std::optional<int32_t> bos_token_id, pad_token_id, decoder_start_token_id;
  std::string source;                    // the file that was read: generation_config.json or config.json
  std::vector<std::string> unsupported;  // "guidance_scale: 3": non-default fields that nothing here implements
  Json raw;                              // the whole file, for what only some families read (core/speech_tokens.h)

  // Errors name file and field; token ids are checked against config.decoder_vocab_size. Where generation_config.json
  // lacks bos, eos, pad or decoder_start ids, config.json's hold: without an end token nothing would ever stop.
  static StatusOr<GenerationConfig> load(const std::string& dir, const ModelConfig& config);
};

}  // namespace transept
