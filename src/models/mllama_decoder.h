// The decoder of Mllama (Llama 3.2 Vision): Llama's layers with rotary positions, and between them layers that cross
// the rows of pictures instead of attending to themselves, with norms of heads and gates. Prompts have 8 ids more than
// the output layer. Source: transformers, models/mllama/modeling_mllama.py, MllamaTextModel; modeling_rope_utils.py.
// Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/model_config.h"
#include "models/encoder_decoder_model.h"
#include "models/llama_layer.h"

namespace transept {

struct MllamaDecoderConfig {
  int64_t vocab_size = 0;  // of the output layer
  int64_t layers = 0, max_positions = 0;
  LlamaSizes sizes;
  std::vector<bool> crosses;       // of each layer: it crosses, and has no self-attention
  std::vector<float> frequencies;  // of rotary positions, scaled
};

// Reads text_config. Errors, naming file and field: kInvalidArgument: a value of the wrong type or range, or two that
// contradict each other; a layer that is not there, or none at all, among cross_attention_layers; kUnimplemented by
// name: the first layer among them; a kind of rotary positions other than default and llama3.
StatusOr<MllamaDecoderConfig> read_mllama_decoder(const ModelConfig& config);

// Reads every tensor below `prefix` ("language_model.model."), and the output layer `head`. Errors: a missing or
// misshapen tensor by name; kUnimplemented for heads that the attention backend does not support.
StatusOr<Decoder> load_mllama_decoder(const MllamaDecoderConfig& config, const std::string& prefix,
                                      const std::string& head, WeightMap& weights, const ModelLoadOptions& options);

// A gate as a layer multiplies by it: tanh of the tensor `name`, [1]. Errors: a missing or misshapen tensor by name.
StatusOr<float> read_tanh_gate(WeightMap& weights, const std::string& name);
DeviceFloats gate_of(float value, WeightMap& weights);

}  // namespace transept
