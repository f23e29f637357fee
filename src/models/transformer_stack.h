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
#include <span>
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
  // A feed-forward of rows of kind kExpertRows (layers/row_runs.h), in place of that of the others; the sum and the
  // norm are the same. None: all rows are alike.
  std::optional<FeedForward> expert_feed_forward = {};
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
  // Errors: Unimplemented, what the backend does not support.
  static StatusOr<TransformerStack> make(StackParts parts, const AttentionBackend& attention);

  int32_t num_layers() const { return static_cast<int32_t>(parts_.layers.size()); }

  // The KV of a decoder's layers: a spec for each kind and shape of heads, in the order in which layers first have it
  // (of one layer: self, then cross). Lists by spec that are passed to this class begin with these.
  const std::vector<KvSpec>& kv_specs() const { return specs_; }

  // Runs layers `range` of an encoder over x [batch.num_tokens(), dim], in place.
  void encode(Context& context, const EncodeBatch& batch, LayerRange range, const TensorView& x) const;

  // Projects encoder rows [rows, kv_dim] to the cross K and V of layers `range`, and writes them at slot_mapping of
  // writes[s], s the layer's spec. Skips layers whose spec has no slots.
  void write_cross_kv(Context& context, const TensorView& encoder_rows, std::span<const AttentionMetadata> writes,
                      const KvCaches& kv, LayerRange range) const;

  // Runs layers `range` of a decoder over x [batch.num_tokens(), dim], in place.
  void decode(Context& context, const ForwardBatch& batch, LayerRange range, const TensorView& x) const;

  // The norm behind the last layer, if there is one, in place. x: [rows, dim].
  void normalize(Context& context, const TensorView& x) const;

 private:
  TransformerStack(StackParts parts, const AttentionBackend& attention);

  // What a step brings to all layers of a range.
  struct Step {
    const AttentionMetadata* encoder = nullptr;         // of all layers; null: a decoder
    std::span<const AttentionMetadata> attention = {};  // of a decoder, by spec
    KvCaches kv = {};
    const CrossCapture* capture = nullptr;
    View<uint8_t> row_kinds = {};
  };

  void run(Context& context, const Step& step, View<int32_t> positions, LayerRange range, const TensorView& x) const;
  void run_self(Context& context, const Step& step, int32_t index, const RopeAngles* angles, const TensorView& x) const;
  void run_cross(Context& context, const Step& step, int32_t index, const TensorView& x) const;
  void run_feed_forward(Context& context, const Step& step, int32_t index, const TensorView& x) const;
  const TransformerLayer& layer(int32_t index) const { return parts_.layers[static_cast<size_t>(index)]; }
  // Where a layer's KV is: its spec, and its place among the spec's layers.
  struct KvPlace {
    size_t spec = 0, index = 0;
    const TensorView& cache(const KvCaches& kv) const { return kv.specs[spec][index]; }
  };
  KvPlace add_to_spec(KvKind kind, TableOwner owner, const AttentionHeads& heads, int32_t index);
  const KvPlace& self_place(int32_t index) const { return self_places_[static_cast<size_t>(index)]; }
  const KvPlace& cross_place(int32_t index) const { return cross_places_[static_cast<size_t>(index)]; }

  StackParts parts_;
  const AttentionBackend* attention_;  // never null; a reference could not be assigned
  std::vector<KvSpec> specs_;
  std::vector<KvPlace> self_places_, cross_places_;  // [num_layers]; of a layer without: not read
};

}  // namespace transept
