#include "models/transformer_stack.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace transept {
namespace {

// Appends the spec of a kind, unless no layer has it. `get` returns a layer's attention of this kind, or null.
template <typename Get>
void add_spec(const std::vector<TransformerLayer>& layers, KvSpec spec, const Get& get, std::vector<KvSpec>& specs) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const AttentionHeads* heads = get(layers[i]);
    if (heads == nullptr) continue;
    const auto num_heads = static_cast<int32_t>(heads->num_kv_heads()), dim = static_cast<int32_t>(heads->head_dim());
    CHECK(spec.layers.empty() || (spec.num_kv_heads == num_heads && spec.head_dim == dim));
    spec.layers.push_back(static_cast<int32_t>(i));
    spec.num_kv_heads = num_heads;
    spec.head_dim = dim;
  }
  if (!spec.layers.empty()) specs.push_back(std::move(spec));
}

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
    : parts_(std::move(parts)), attention_(attention) {
  CHECK(parts_.biases.size() <= 1 || parts_.biases.size() == parts_.layers.size());
  int32_t num_self = 0, num_cross = 0;
  for (const TransformerLayer& layer : parts_.layers) {
    self_places_.push_back(num_self);
    cross_places_.push_back(num_cross);
    num_self += layer.self.has_value() ? 1 : 0;
    num_cross += layer.cross.has_value() ? 1 : 0;
  }
  cross_spec_ = num_self > 0 ? 1 : 0;  // as kv_specs() lists them
}

std::vector<KvSpec> TransformerStack::kv_specs() const {
  std::vector<KvSpec> specs;
  add_spec(parts_.layers, {.kind = KvKind::kSelf, .owner = TableOwner::kSequence}, self_heads, specs);
  add_spec(parts_.layers, {.kind = KvKind::kCross, .owner = TableOwner::kGroup}, cross_heads, specs);
  return specs;
}

const TensorView& TransformerStack::self_cache(const KvCaches& kv, int32_t index) const {
  return kv.specs[self_spec_][static_cast<size_t>(self_places_[static_cast<size_t>(index)])];
}

const TensorView& TransformerStack::cross_cache(const KvCaches& kv, int32_t index) const {
  return kv.specs[cross_spec_][static_cast<size_t>(cross_places_[static_cast<size_t>(index)])];
}

void TransformerStack::encode(Context& context, const EncodeBatch& batch, LayerRange range, const TensorView& x) const {
  run(context, {AttentionType::kEncoder, batch.attention}, batch.positions, range, x);
}

void TransformerStack::write_cross_kv(Context& context, const TensorView& encoder_rows, const AttentionMetadata& cross,
                                      const KvCaches& kv, LayerRange range) const {
  for (int32_t i = range.begin; i < range.end; ++i) {
    if (!layer(i).cross.has_value()) continue;
    AttentionInputs inputs{attention_, AttentionType::kEncoderDecoder, cross};
    inputs.kv_cache = cross_cache(kv, i);
    layer(i).cross->f.write_kv(context, inputs, encoder_rows);
  }
}

void TransformerStack::decode(Context& context, const ForwardBatch& batch, LayerRange range,
                              const TensorView& x) const {
  run(context, {AttentionType::kDecoder, batch.self, &batch.cross, batch.kv, batch.capture, batch.row_kinds},
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
  sublayer.sum.run(context, x, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
    sublayer.f.forward(context, in, residual, out);
  });
  if (keeps) copy_rows_of_kind(context, kept, step.row_kinds, *kept_kind, x);
}

void TransformerStack::run_self(Context& context, const Step& step, int32_t index, const RopeAngles* angles,
                                const TensorView& x) const {
  AttentionInputs inputs{attention_, step.type, step.self};
  if (step.cross != nullptr) inputs.kv_cache = self_cache(step.kv, index);
  std::optional<AttentionBias> bias;
  if (!parts_.biases.empty()) {
    bias = parts_.biases[parts_.biases.size() == 1 ? 0 : static_cast<size_t>(index)].bias();
    inputs.bias = &*bias;
  }
  inputs.angles = angles;
  const Sublayer<SelfAttention>& sublayer = *layer(index).self;
  sublayer.sum.run(context, x, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
    sublayer.f.forward(context, inputs, in, residual, out);
  });
}

void TransformerStack::run_cross(Context& context, const Step& step, int32_t index, const TensorView& x) const {
  AttentionInputs inputs{attention_, AttentionType::kEncoderDecoder, *step.cross};
  inputs.kv_cache = cross_cache(step.kv, index);
  LayerCapture capture(step.capture, index);
  inputs.capture = capture.get();
  const Sublayer<CrossAttention>& sublayer = *layer(index).cross;
  sublayer.sum.run(context, x, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
    sublayer.f.forward(context, inputs, in, residual, out);
  });
}

}  // namespace transept
