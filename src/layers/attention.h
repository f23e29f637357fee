// Attention with its projections, over an AttentionBackend that the caller passes.
//
// Self-attention (encoder and decoder) computes Q, K and V in one product. Cross-attention computes Q from the decoder.
// It computes K and V from the encoder output in one product, only when the cross cache is written: never again while
// decoding. Ranks (PackOptions::ranks) have some of the heads each: their Q, K and V, their KV, and their part of the
// inputs of `out`, whose sum is the same on all. Self-attention may have an expert: matrices of its own for the rows of
// one kind (layers/row_runs.h). Immutable after loading, so thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/backend.h"
#include "layers/linear.h"
#include "layers/norm.h"
#include "ops/rope.h"

namespace transept {

struct AttentionOptions {
  std::string prefix;  // "decoder.layers.0.self_attn"
  std::string q = "q_proj", k = "k_proj", v = "v_proj", out = "out_proj";
  int64_t dim = 0;           // of the rows that ask, and of what `out` projects back to
  int64_t kv_dim = 0;        // of the rows that K and V are projected from (cross-attention); 0: dim
  int64_t num_heads = 0;     // of queries
  int64_t num_kv_heads = 0;  // 0: as many; else each serves num_heads / num_kv_heads queries in a row
  int64_t head_dim = 0;      // 0: dim / num_heads
  float scale = 1;
  // One matrix in place of q, k and v, or of the k and v of cross-attention (GPT-2's c_attn); "": each has its own.
  std::string fused = {};
  bool is_transposed = false;  // matrices are [inputs, outputs] (GPT-2's)
  bool has_biases = true;
  bool qkv_has_bias = true;              // ViT's may have none
  bool k_has_bias = true;                // Whisper's has none
  bool out_has_bias = true;              // Moonshine's has none
  std::string q_bias = {}, v_bias = {};  // of Q and of V, where they have names of their own (EVA-02's)
  std::string q_norm = {}, k_norm = {};  // norms of each head of Q, of K, behind the projection; "": none
  NormOptions head_norm = {};
  std::string inner_norm = {};  // of all heads' values, before `out` (EVA-02's sub-LN); "": none
  NormOptions inner_norm_options = {};
  // Self-attention: matrices for rows of kind kExpertRows, in place of `fused` and `out`; "": none.
  std::string expert_fused = {}, expert_out = {};

  int64_t width_of_head() const { return head_dim == 0 ? dim / num_heads : head_dim; }
  int64_t kv_heads() const { return num_kv_heads == 0 ? num_heads : num_kv_heads; }
  int64_t q_width() const { return num_heads * width_of_head(); }
  int64_t kv_width() const { return kv_heads() * width_of_head(); }
  int64_t kv_input_dim() const { return kv_dim == 0 ? dim : kv_dim; }
};

// The shape of this rank's heads, and what happens to them between projection and attention. Immutable after loading.
class AttentionHeads final {
 public:
  // Reads the norms of heads, if the options name some. Errors: Unimplemented, heads that so many ranks cannot divide;
  // those of Norm::load.
  static StatusOr<AttentionHeads> load(WeightMap& weights, const AttentionOptions& options, const Ranks& ranks);

  int64_t q_width() const { return num_heads_ * head_dim_; }
  int64_t kv_width() const { return num_kv_heads_ * head_dim_; }
  int64_t num_kv_heads() const { return num_kv_heads_; }
  int64_t head_dim() const { return head_dim_; }
  // The place among this rank's heads of one of all, or -1.
  int32_t place_of(int32_t head) const {
    const int64_t place = head - first_head_;
    return place >= 0 && place < num_heads_ ? static_cast<int32_t>(place) : -1;
  }
  AttentionCapabilities wanted() const;
  float scale() const { return scale_; }

  // Normalises heads (if the layer does) and rotates them (unless angles is null), in place. q: [rows, q_width], k:
  // [rows, kv_width] float32. Returns a view [rows, heads, head_dim].
  TensorView prepare_q(Context& context, const TensorView& q, const RopeAngles* angles) const;
  TensorView prepare_k(Context& context, const TensorView& k, const RopeAngles* angles) const;

 private:
  AttentionHeads(const AttentionOptions& options, const Ranks& ranks);

  int64_t num_heads_, num_kv_heads_, head_dim_;
  int64_t first_head_;  // of all ranks' heads
  float scale_;
  Norm q_norm_, k_norm_;  // empty: none
};

// What a step brings to every attention layer of a stack; `kv_cache`, `bias` and `capture` are the layer's own.
struct AttentionInputs {
  const AttentionBackend& backend;
  AttentionType type = AttentionType::kEncoder;
  const AttentionMetadata& metadata;
  TensorView kv_cache = {};             // of the layer; empty for kEncoder
  const AttentionBias* bias = nullptr;  // added to the scores; null: none
  const RopeAngles* angles = nullptr;   // rotate Q and K (ops/rope.h); null: no rotation
  AttentionCapture* capture = nullptr;  // null: nothing is captured
  View<uint8_t> row_kinds = {};         // of the rows of x, for layers with experts; empty: none is kExpertRows
};

class SelfAttention final {
 public:
  // Fuses q, k and v into one product. Errors: those of AttentionHeads::load and Linear::load; Unimplemented, an inner
  // norm over heads that several ranks have.
  static StatusOr<SelfAttention> load(WeightMap& weights, const AttentionOptions& options, const PackOptions& packing);

  // y = out_proj(attention(x)) + residual. x, residual (rank 0: none), y: [rows, dim] float32; y may be the residual.
  // inputs.type: kEncoder (kv_cache empty) or kDecoder (causal; writes new K and V to the cache).
  void forward(Context& context, const AttentionInputs& inputs, const TensorView& x, const TensorView& residual,
               const TensorView& y) const;

  const AttentionHeads& heads() const { return heads_; }

 private:
  struct Products {
    Linear qkv, out;
  };

  SelfAttention(Products own, AttentionHeads heads) : own_(std::move(own)), heads_(std::move(heads)) {}

  // y = product(x) + residual, by the rows' own matrices.
  void multiply(Context& context, Linear Products::*product, const AttentionInputs& inputs, const TensorView& x,
                const TensorView& residual, const TensorView& y) const;

  Products own_;
  std::optional<Products> expert_;  // of rows of kind kExpertRows; none: all rows are alike
  AttentionHeads heads_;
  Norm inner_norm_;  // empty: none
};

class CrossAttention final {
 public:
  // Fuses k and v into one product. Errors: those of AttentionHeads::load and Linear::load.
  static StatusOr<CrossAttention> load(WeightMap& weights, const AttentionOptions& options, const PackOptions& packing);

  // Projects encoder_output [encoder rows, kv_dim] to K and V and writes them at inputs.metadata.slot_mapping of
  // inputs.kv_cache.
  void write_kv(Context& context, const AttentionInputs& inputs, const TensorView& encoder_output) const;

  // y = out_proj(attention of x over the cached K and V) + residual. Shapes as of SelfAttention.
  void forward(Context& context, const AttentionInputs& inputs, const TensorView& x, const TensorView& residual,
               const TensorView& y) const;

  const AttentionHeads& heads() const { return heads_; }

 private:
  CrossAttention(Linear q, Linear kv, Linear out, AttentionHeads heads)
      : q_(std::move(q)), kv_(std::move(kv)), out_(std::move(out)), heads_(std::move(heads)) {}

  Linear q_, kv_, out_;
  AttentionHeads heads_;
};

// The part of one decoder layer in what a step captures. Lives as long as the layer runs; borrows the capture.
class LayerCapture final {
 public:
  // `wanted` null: captures nothing. Of other ranks' heads nothing is written.
  LayerCapture(const CrossCapture* wanted, int32_t layer, const AttentionHeads& heads);
  LayerCapture(const LayerCapture&) = delete;  // capture_ views heads_
  LayerCapture& operator=(const LayerCapture&) = delete;

  // Null: no head of this layer is captured.
  AttentionCapture* get() { return heads_.empty() ? nullptr : &capture_; }

 private:
  std::vector<int32_t> heads_;
  AttentionCapture capture_;
};

}  // namespace transept
