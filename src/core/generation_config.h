// The decoding defaults of a model: generation_config.json, or the legacy keys of config.json if that file does not
// exist (docs/api.md, Where values come from). A value; load() is thread-safe.
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
  std::optional<int32_t> max_length, min_length;          // tokens, the decoder prompt included
  std::optional<int32_t> max_new_tokens, min_new_tokens;  // tokens, the decoder prompt excluded
  bool do_sample = false;
  float temperature = 1;
  int32_t top_k = 0;  // 0: all. do_sample without top_k: 50, the default of Hugging Face
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
  std::vector<std::string> unsupported;  // "guidance_scale: 3": non-default fields that are not implemented
  Json raw;                              // the whole file, for fields of single families (core/speech_tokens.h)

  // Reads the file of `folder`. Without generation_config.json, what the top level of a composite model's config.json
  // lacks its decoder's object has. Where generation_config.json lacks bos, eos, pad or decoder_start ids, those of
  // config.json hold, of a composite model those of its decoder after its own: without an end token no answer would
  // stop. Those of a family's class stand behind all files, or before them (ModelConfig::fixes_special_ids). Errors:
  // kInvalidArgument, naming file and field: a file that is not a JSON object, a value of the wrong type or range, an
  // id outside config.decoder_vocab_size (0: not checked).
  static StatusOr<GenerationConfig> load(const ModelFolder& folder, const ModelConfig& config);
};

}  // namespace transept
