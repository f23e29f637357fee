#include "models/transformer_stack.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "layers/row_runs.h"

namespace transept {
namespace {

const AttentionHeads* self_heads(const TransformerLayer& layer) {
  return layer.self.has_value() ? &layer.self->f.heads() : nullptr;
}
const AttentionHeads* cross_heads(const TransformerLayer& layer) {
  return layer.cross.has_value() ? &layer.cross->f.heads() : nullptr;
}

}  // namespace

StatusOr<TransformerStack> TransformerStack::make(StackParts parts, const AttentionBackend& attention) {
  for (const TransformerLayer& layer : parts.layers) {
    for (const AttentionHeads* heads : {self_heads(layer), cross_heads(layer)}) {
      std::string why;
      if (heads == nullptr || attention.supports(heads->wanted(), &why)) continue;
      return unimplemented("attention backend ", attention.name(), ": ", why);
    }
  }
  return TransformerStack(std::move(parts), attention);
}

TransformerStack::TransformerStack(StackParts parts, const AttentionBackend& attention)
    : parts_(std::move(parts)), attention_(&attention) {
  CHECK(parts_.biases.size() <= 1 || parts_.biases.size() == parts_.layers.size());
  self_places_.resize(parts_.layers.size());
  cross_places_.resize(parts_.layers.size());
  for (size_t i = 0; i < parts_.layers.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    const AttentionHeads *self = self_heads(parts_.layers[i]), *cross = cross_heads(parts_.layers[i]);
    if (self != nullptr) self_places_[i] = add_to_spec(KvKind::kSelf, TableOwner::kSequence, *self, index);
    if (cross != nullptr) cross_places_[i] = add_to_spec(KvKind::kCross, TableOwner::kGroup, *cross, index);
  }
}

TransformerStack::KvPlace TransformerStack::add_to_spec(KvKind kind, TableOwner owner, const AttentionHeads& heads,
                                                        int32_t index) {
  const auto num_heads = static_cast<int32_t>(heads.num_kv_heads()), dim = static_cast<int32_t>(heads.head_dim());
  auto spec = std::find_if(specs_.begin(), specs_.end(), [&](const KvSpec& known) {
    return known.kind == kind && known.num_kv_heads == num_heads && known.head_dim == dim;
  });
  if (spec == specs_.end()) {
    specs_.push_back({.kind = kind, .owner = owner, .num_kv_heads = num_heads, .head_dim = dim});
    spec = specs_.end() - 1;
  }
  spec->layers.push_back(index);
  return {static_cast<size_t>(spec - specs_.begin()), spec->layers.size() - 1};
}

void TransformerStack::encode(Context& context, const EncodeBatch& batch, LayerRange range, const TensorView& x) const {
  run(context, {.encoder = &batch.attention}, batch.positions, range, x);
}

void TransformerStack::write_cross_kv(Context& context, const TensorView& encoder_rows,
                                      std::span<const AttentionMetadata> writes, const KvCaches& kv,
                                      LayerRange range) const {
  for (int32_t i = range.begin; i < range.end; ++i) {
    if (!layer(i).cross.has_value()) continue;
    const AttentionMetadata& write = writes[cross_place(i).spec];
    if (write.slot_mapping.empty()) continue;
    AttentionInputs inputs{*attention_, AttentionType::kEncoderDecoder, write};
    inputs.kv_cache = cross_place(i).cache(kv);
    layer(i).cross->f.write_kv(context, inputs, encoder_rows);
  }
}

void TransformerStack::decode(Context& context, const ForwardBatch& batch, LayerRange range,
                              const TensorView& x) const {
  run(context, {.attention = batch.attention, .kv = batch.kv, .capture = batch.capture, .row_kinds = batch.row_kinds},
      batch.positions, range, x);
}

void TransformerStack::normalize(Context& context, const TensorView& x) const {
  if (parts_.final_norm.has_value()) parts_.final_norm->forward(context, x, x);
}

void TransformerStack::run(Context& context, const Step& step, View<int32_t> positions, LayerRange range,
                           const TensorView& x) const {
  DCHECK(0 <= range.begin && range.begin <= range.end && range.end <= num_layers());
  const Arena::Scope scope(context.arena);
  std::optional<RopeAngles> angles;
  if (!parts_.rope.frequencies.empty()) angles = rope_angles(context, parts_.rope, positions);
  for (int32_t i = range.begin; i < range.end; ++i) {
    if (layer(i).self.has_value()) run_self(context, step, i, angles.has_value() ? &*angles : nullptr, x);
    if (layer(i).cross.has_value()) run_cross(context, step, i, x);
    if (layer(i).feed_forward.has_value()) run_feed_forward(context, step, i, x);
  }
}

void TransformerStack::run_feed_forward(Context& context, const Step& step, int32_t index, const TensorView& x) const {
  const Arena::Scope scope(context.arena);
  const std::optional<uint8_t> kept_kind = layer(index).kind_without_feed_forward;
  TensorView kept;
  if (kept_kind.has_value()) kept = context.arena.tensor(DType::kFloat32, {x.dim(0), x.dim(1)});
  const bool keeps = kept_kind.has_value() && !step.row_kinds.empty();
  if (keeps) copy_rows_of_kind(context, x, step.row_kinds, *kept_kind, kept);
  const Sublayer<FeedForward>& sublayer = *layer(index).feed_forward;
  const std::optional<FeedForward>& expert = layer(index).expert_feed_forward;
  const View<uint8_t> kinds = expert.has_value() ? step.row_kinds : View<uint8_t>();
  sublayer.sum.run(context, x, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
    for_each_run(kinds, in.dim(0), [&](int64_t begin, int64_t end, bool is_experts) {
      const TensorView added = residual.rank == 0 ? residual : residual.rows(begin, end);
      (is_experts ? *expert : sublayer.f).forward(context, in.rows(begin, end), added, out.rows(begin, end));
    });
  });
  if (keeps) copy_rows_of_kind(context, kept, step.row_kinds, *kept_kind, x);
}

void TransformerStack::run_self(Context& context, const Step& step, int32_t index, const RopeAngles* angles,
                                const TensorView& x) const {
  const KvPlace& place = self_place(index);
  const bool encodes = step.encoder != nullptr;
  AttentionInputs inputs{*attention_, encodes ? AttentionType::kEncoder : AttentionType::kDecoder,
                         encodes ? *step.encoder : step.attention[place.spec]};
  if (!encodes) inputs.kv_cache = place.cache(step.kv);
  std::optional<AttentionBias> bias;
  if (!parts_.biases.empty()) {
    bias = parts_.biases[parts_.biases.size() == 1 ? 0 : static_cast<size_t>(index)].bias();
    inputs.bias = &*bias;
  }
  inputs.angles = angles;
  inputs.row_kinds = step.row_kinds;
  const Sublayer<SelfAttention>& sublayer = *layer(index).self;
  sublayer.sum.run(context, x, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
    sublayer.f.forward(context, inputs, in, residual, out);
  });
}

void TransformerStack::run_cross(Context& context, const Step& step, int32_t index, const TensorView& x) const {
  const KvPlace& place = cross_place(index);
  AttentionInputs inputs{*attention_, AttentionType::kEncoderDecoder, step.attention[place.spec]};
  inputs.kv_cache = place.cache(step.kv);
  const Sublayer<CrossAttention>& sublayer = *layer(index).cross;
  LayerCapture capture(step.capture, index, sublayer.f.heads());
  inputs.capture = capture.get();
  sublayer.sum.run(context, x, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
    sublayer.f.forward(context, inputs, in, residual, out);
  });
}

}  // namespace transept
