// The decoder of CogAgent: Llama's layers, which all cross the rows of the large picture behind their self-attention,
// by heads of another width; and matrices of their own for the rows of the small picture (visual experts). Source: the
// checkpoint's remote code, modeling_cogagent.py, CogAgentModel. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "core/model_config.h"
#include "models/encoder_decoder_model.h"
#include "models/llama_layer.h"

namespace transept {

struct CogAgentDecoderConfig {
  int64_t vocab_size = 0, layers = 0, max_positions = 0;
  LlamaSizes sizes;
  int64_t cross_dim = 0;  // of the rows that layers cross, and of all heads that do

  int64_t cross_head_dim() const { return cross_dim / sizes.heads; }
};

// Reads the top of config.json. Errors, naming file and field: kInvalidArgument: a value of the wrong type or range, or
// two that contradict each other; kUnimplemented by name: a tied output layer.
StatusOr<CogAgentDecoderConfig> read_cogagent_decoder(const ModelConfig& config);

// Reads every tensor below `prefix` ("model.") that is the decoder's, and lm_head.weight. Errors: a missing or
// misshapen tensor by name; kUnimplemented for heads that the attention backend does not support.
StatusOr<Decoder> load_cogagent_decoder(const CogAgentDecoderConfig& config, const std::string& prefix,
                                        WeightMap& weights, const ModelLoadOptions& options);

}  // namespace transept
