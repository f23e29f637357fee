// The properties of a model that the engine needs: sizes, limits, kinds of KV. A value.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/forward_batch.h"
#include "core/kv_spec.h"

namespace transept {

// The tokens after the decoder's start token, for a request without a decoder prompt.
enum class DefaultPrompt : uint8_t {
  kStart,       // none
  kBos,         // the bos token (BART)
  kLanguage,    // the target language: the request's, else forced_bos_token_id of generation_config.json, else none
  kTranscript,  // language, task and no-timestamps, by the request and core/speech_tokens.h (Whisper)
};

struct ModelSpec {
  std::string family;  // "bart"
  int32_t d_model = 0;
  int32_t vocab_size = 0;          // of the decoder
  int32_t encoder_vocab_size = 0;  // 0: the same (Marian may have two)
  int32_t num_encoder_layers = 0;
  int32_t num_decoder_layers = 0;
  static constexpr int32_t kNoLimit = std::numeric_limits<int32_t>::max();
  // Limit of a side's positions and of --max-model-len, because the lists of a step grow with them (some 700 bytes per
  // position). Eight times the longest published context fits.
  static constexpr int32_t kMaxPositions = 1 << 20;
  int32_t max_encoder_positions = 0;  // kNoLimit: unlimited (relative positions)
  int32_t max_decoder_positions = 0;
  std::vector<KvSpec> kv;               // one of kind kSelf, and one of kind kCross for encoder/decoder models
  std::vector<std::string> modalities;  // keys of multi_modal_data that the encoder takes; empty: it takes ids
  // The cross-attention heads whose mean aligns tokens with encoder positions; ascending by layer. Empty: none known.
  std::vector<LayerHead> alignment_heads;
  DefaultPrompt default_prompt = DefaultPrompt::kStart;

  bool encoder_takes_ids() const { return modalities.empty(); }
  int32_t encoder_vocab() const { return encoder_vocab_size > 0 ? encoder_vocab_size : vocab_size; }
};

}  // namespace transept
