// What the engine must know of a model: sizes, limits, kinds of KV. A value.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/forward_batch.h"
#include "core/kv_spec.h"

namespace transept {

// What the decoder begins with behind its start token, where a request says nothing.
enum class DefaultPrompt : uint8_t {
  kStart,       // nothing
  kBos,         // the bos token (BART)
  kLanguage,    // the target language: the request's, else generation_config's forced_bos_token_id, else nothing
  kTranscript,  // language, task and no-timestamps, as the request and core/speech_tokens.h say (Whisper)
};

// What the engine must know of a model.
struct ModelSpec {
  std::string family;  // "bart"
  int32_t d_model = 0;
  int32_t vocab_size = 0;          // the decoder's
  int32_t encoder_vocab_size = 0;  // 0: the same (Marian may keep two)
  int32_t num_encoder_layers = 0;
  int32_t num_decoder_layers = 0;
  static constexpr int32_t kNoLimit = std::numeric_limits<int32_t>::max();
  // A side's positions and --max-model-len are at most so many: lists that a step needs grow with them (some 700 bytes
  // each), and eight times the longest context that is published fits.
  static constexpr int32_t kMaxPositions = 1 << 20;
  int32_t max_encoder_positions = 0;  // kNoLimit: any number (relative positions)
  int32_t max_decoder_positions = 0;
  std::vector<KvSpec> kv;                  // one of kind kSelf, and one of kind kCross for encoder/decoder models
  std::vector<std::string> modalities;     // keys of multi_modal_data that the encoder takes; none: ids
  std::vector<LayerHead> alignment_heads;  // whose mean says which encoder position a token is about; by layer
  DefaultPrompt default_prompt = DefaultPrompt::kStart;

  bool encoder_takes_ids() const { return modalities.empty(); }
  int32_t encoder_vocab() const { return encoder_vocab_size > 0 ? encoder_vocab_size : vocab_size; }
};

}  // namespace transept
