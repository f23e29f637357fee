// A stack of transformer layers: the encoder or the decoder of every family, which differ in options and in names of
// tensors, not in this code.
//
// A layer has any of self-attention, cross-attention and a feed-forward, in this order; each has its residual sum, norm
// and gate (layers/residual.h). What else differs (grouped heads, norms of heads, widths, biases, gated feed-forwards)
// are options of the layers; rotary positions and biases by distance belong to the stack. Source: transformers,
// models/{bart,mbart,marian,pegasus,m2m_100,blenderbot,t5,whisper,moonshine,llama,mllama}/modeling_*.py.
//
// Immutable after construction, so thread-safe; borrows the attention backend, which outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/backend.h"
#include "core/forward_batch.h"
#include "core/kv_spec.h"
#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "layers/norm.h"
#include "layers/residual.h"

namespace transept {

// A sublayer f and what its result is added to.
template <typename F>
struct Sublayer {
  F f;
  Residual sum;
};

struct TransformerLayer {
  std::optional<Sublayer<SelfAttention>> self;
  std::optional<Sublayer<CrossAttention>> cross;
  std::optional<Sublayer<FeedForward>> feed_forward;
  // Rows of this kind (ForwardBatch::row_kinds) pass the feed-forward as they are (Mllama's rows before any image).
  std::optional<uint8_t> kind_without_feed_forward = {};
};

struct StackParts {
  std::vector<TransformerLayer> layers;
  std::vector<DistanceBias> biases = {};  // of self-attention: none, one for all layers, or one a layer
  Rope rope = {};                         // of self-attention
  std::optional<Norm> final_norm = {};    // behind the last layer
};

class TransformerStack final {
 public:
  // REQUIRES: self-attentions have KV heads of one shape, and cross-attentions have. Errors: Unimplemented, what the
  // backend does not support.
  static StatusOr<TransformerStack> make(StackParts parts, const AttentionBackend& attention);

  int32_t num_layers() const { return static_cast<int32_t>(parts_.layers.size()); }

  // The KV of a decoder's layers: one spec of kind kSelf and one of kind kCross, each only if some layer has it.
  std::vector<KvSpec> kv_specs() const;

  // Runs layers `range` of an encoder over x [batch.num_tokens(), dim], in place.
  void encode(Context& context, const EncodeBatch& batch, LayerRange range, const TensorView& x) const;

  // Projects encoder rows [rows, kv_dim] to the cross K and V of layers `range`, and writes them at
  // cross.slot_mapping.
  void write_cross_kv(Context& context, const TensorView& encoder_rows, const AttentionMetadata& cross,
                      const KvCaches& kv, LayerRange range) const;

  // Runs layers `range` of a decoder over x [batch.num_tokens(), dim], in place.
  void decode(Context& context, const ForwardBatch& batch, LayerRange range, const TensorView& x) const;

  // The norm behind the last layer, if there is one, in place. x: [rows, dim].
  void normalize(Context& context, const TensorView& x) const;

 private:
  TransformerStack(StackParts parts, const AttentionBackend& attention);

  // What a step brings to all layers of a range.
  struct Step {
    AttentionType type;
    const AttentionMetadata& self;
    const AttentionMetadata* cross = nullptr;  // null: an encoder
    KvCaches kv = {};
    const CrossCapture* capture = nullptr;
    View<uint8_t> row_kinds = {};
  };

  void run(Context& context, const Step& step, View<int32_t> positions, LayerRange range, const TensorView& x) const;
  void run_self(Context& context, const Step& step, int32_t index, const RopeAngles* angles, const TensorView& x) const;
  void run_cross(Context& context, const Step& step, int32_t index, const TensorView& x) const;
  void run_feed_forward(Context& context, const Step& step, int32_t index, const TensorView& x) const;
  const TransformerLayer& layer(int32_t index) const { return parts_.layers[static_cast<size_t>(index)]; }
  // The layer's place among the KV caches of its kind.
  const TensorView& self_cache(const KvCaches& kv, int32_t index) const;
  const TensorView& cross_cache(const KvCaches& kv, int32_t index) const;

  StackParts parts_;
  const AttentionBackend& attention_;
  size_t self_spec_ = 0, cross_spec_ = 1;            // in kv_specs()
  std::vector<int32_t> self_places_, cross_places_;  // [num_layers]; of a layer without: not read
};

}  // namespace transept
