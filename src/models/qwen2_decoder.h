// The decoder of Qwen2-VL and Qwen2.5-VL: Qwen2 (Yang et al. 2024), whose positions have three axes. Grouped heads, q,
// k and v with biases, RMS norms, a gated feed-forward; no layer crosses. Source: transformers,
// models/qwen2_5_vl/modeling_qwen2_5_vl.py, Qwen2_5_VLTextModel. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/model_config.h"
#include "models/encoder_decoder_model.h"

namespace transept {

struct Qwen2DecoderConfig {
  static constexpr int32_t kNumAxes = 3;

  std::string file;  // "DIR/config.json", or with the object: for messages
  int64_t vocab_size = 0, dim = 0, hidden_dim = 0;
  int64_t layers = 0, heads = 0, kv_heads = 0, max_positions = 0;
  Activation activation = Activation::kSilu;
  float epsilon = 1e-5f;
  double theta = 1e6;
  std::vector<int32_t> sections;  // pairs of each axis
  bool tied = false;

  int64_t head_dim() const { return dim / heads; }
};

// Reads text_config, or the top of a published file, which has the same fields there. Errors, naming file and field:
// kInvalidArgument: a value of the wrong type or range, or two that contradict each other; kUnimplemented by name:
// sliding windows that have an effect, another kind of rotary positions.
StatusOr<Qwen2DecoderConfig> read_qwen2_decoder(const ModelConfig& config);

// Reads every tensor below `prefix` ("model."), and lm_head.weight. Errors: a missing or misshapen tensor by name;
// kUnimplemented for heads that the attention backend does not support.
StatusOr<Decoder> load_qwen2_decoder(const Qwen2DecoderConfig& config, const std::string& prefix, WeightMap& weights,
                                     const ModelLoadOptions& options);

}  // namespace transept
