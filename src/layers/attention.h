// Attention with its projections, over an AttentionBackend that the model was given.
//
// Self-attention (encoder and decoder) computes Q, K and V in one product. Cross-attention computes Q from the decoder.
// It computes K and V from the encoder output in one product, only when the cross cache is written: never again while
// decoding. Immutable after loading, so thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "layers/linear.h"
#include "ops/rope.h"

namespace transept {

struct AttentionOptions {
  std::string prefix;  // "decoder.layers.0.self_attn"
  std::string q = "q_proj", k = "k_proj", v = "v_proj", out = "out_proj";
  int64_t dim = 0;
  int64_t num_heads = 0;
  int64_t head_dim = 0;  // 0: dim / num_heads
  float scale = 1;
  bool has_biases = true;
  bool k_has_bias = true;    // Whisper's has none
  bool out_has_bias = true;  // Moonshine's has none

  // The width of Q, K and V, which `out` projects back to dim.
  int64_t inner_dim() const { return head_dim == 0 ? dim : num_heads * head_dim; }
};

class SelfAttention final {
 public:
  // Fuses q, k and v into one product. Errors: those of Linear::load.
  static StatusOr<SelfAttention> load(WeightMap& weights, const AttentionOptions& options, const PackOptions& packing);

  // y = out_proj(attention(x)) + residual. x, residual, y: [rows, dim] float32; y may be the residual. `type`: kEncoder
  // (kv_cache empty) or kDecoder (causal; writes new K and V to the cache). bias: added to the scores; null: none.
  // angles: turn Q and K (ops/rope.h); null: no rotation.
  void forward(Context& context, const AttentionBackend& backend, AttentionType type, const AttentionMetadata& metadata,
               const TensorView& kv_cache, const TensorView& x, const TensorView& residual, const TensorView& y,
               const AttentionBias* bias = nullptr, const RopeAngles* angles = nullptr) const;

 private:
  SelfAttention(Linear qkv, Linear out, const AttentionOptions& options)
      : qkv_(std::move(qkv)), out_(std::move(out)), num_heads_(options.num_heads), scale_(options.scale) {}

  Linear qkv_, out_;
  int64_t num_heads_;
  float scale_;
};

class CrossAttention final {
 public:
  // Fuses k and v into one product. Errors: those of Linear::load.
  static StatusOr<CrossAttention> load(WeightMap& weights, const AttentionOptions& options, const PackOptions& packing);

  // Projects encoder_output [encoder rows, dim] to K and V, and writes them at metadata.slot_mapping.
  void write_kv(Context& context, const AttentionBackend& backend, const AttentionMetadata& metadata,
                const TensorView& kv_cache, const TensorView& encoder_output) const;

  // y = out_proj(attention of x over the cached K and V) + residual. x, residual, y: [rows, dim] float32; y may be the
  // residual. capture: takes probabilities of chosen heads; null: none.
  void forward(Context& context, const AttentionBackend& backend, const AttentionMetadata& metadata,
               const TensorView& kv_cache, const TensorView& x, const TensorView& residual, const TensorView& y,
               AttentionCapture* capture = nullptr) const;

 private:
  CrossAttention(Linear q, Linear kv, Linear out, const AttentionOptions& options)
      : q_(std::move(q)),
        kv_(std::move(kv)),
        out_(std::move(out)),
        num_heads_(options.num_heads),
        scale_(options.scale) {}

  Linear q_, kv_, out_;
  int64_t num_heads_;
  float scale_;
};

// The part of one decoder layer in what a step captures. Lives as long as the layer runs; borrows the capture.
class LayerCapture final {
 public:
  // `wanted` null: captures nothing.
  LayerCapture(const CrossCapture* wanted, int32_t layer);
  LayerCapture(const LayerCapture&) = delete;  // capture_ views heads_
  LayerCapture& operator=(const LayerCapture&) = delete;

  // Null: no head of this layer is captured.
  AttentionCapture* get() { return heads_.empty() ? nullptr : &capture_; }

 private:
  std::vector<int32_t> heads_;
  AttentionCapture capture_;
};

}  // namespace transept
