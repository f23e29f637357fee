#include "models/encoder_decoder_model.h"

#include <algorithm>

#include "ops/rows.h"

namespace transept {
namespace {

class EncoderDecoderModel final : public Model {
 public:
  EncoderDecoderModel(EncoderDecoderParts parts, std::shared_ptr<WeightMap> weights)
      : weights_(std::move(weights)), parts_(std::move(parts)) {
    CHECK(parts_.encoder.has_value() || parts_.decoder.has_value(), "a model of no part");
    const bool has_others = parts_.splice_encoder.has_value() || parts_.media_encoder.has_value();
    CHECK(parts_.encoder.has_value() || !has_others, "the encoders are one part");
    parts_.spec.part = !parts_.decoder.has_value()   ? ModelPart::kEncoder
                       : !parts_.encoder.has_value() ? ModelPart::kDecoder
                                                     : ModelPart::kWhole;
    settle_encoder();
    settle_decoder();
    if (parts_.decoder.has_value()) parts_.decoder->input.place(weights_->memory());
  }

  const ModelSpec& spec() const override { return parts_.spec; }
  const LmHead& lm_head() const override { return decoder().lm_head; }

  void encode(Context& context, const EncodeBatch& batch, LayerRange range, Activations& state) const override {
    DCHECK(state.next_layer == range.begin, "stages of an encode come in order");
    CHECK(parts_.encoder.has_value(), "the decoder's part encodes nothing");
    const Encoder& encoder = encoder_of(batch);
    const TransformerStack& stack = encoder.stack;
    if (range.begin == 0) encoder.input->forward(context, batch, state.x);
    // The other encoder may have more layers.
    const LayerRange own{std::min(range.begin, stack.num_layers()), std::min(range.end, stack.num_layers())};
    stack.encode(context, batch, own, state.x);
    if (range.end == spec().num_encoder_layers) stack.normalize(context, state.x);
    state.next_layer = range.end;
  }

  void write_cross_kv(Context& context, const TensorView& rows, std::span<const AttentionMetadata> writes,
                      const KvCaches& kv, LayerRange range) const override {
    const auto is_written = [](const AttentionMetadata& write) { return write.slot_mapping.empty(); };
    if (!decoder().cross_projection.has_value() || std::ranges::all_of(writes, is_written)) {
      return decoder().stack.write_cross_kv(context, rows, writes, kv, range);
    }
    const Arena::Scope scope(context.arena);
    const Linear& projection = *decoder().cross_projection;
    const TensorView projected = context.arena.tensor(DType::kFloat32, {rows.dim(0), projection.out_features()});
    projection.forward(context, rows, {}, projected);
    decoder().stack.write_cross_kv(context, projected, writes, kv, range);
  }

  void embed(Context& context, const ForwardBatch& batch, const TensorView& x) const override {
    // A table of positions has one axis.
    const View<int32_t> positions = batch.positions.first(batch.input_ids.size());
    const TensorView cache = batch.splices.empty() ? TensorView() : batch.kv.specs[rows_spec_][0];
    decoder().input.forward(context, batch.input_ids, positions, x, batch.splices, cache);
  }

  void decode(Context& context, const ForwardBatch& batch, LayerRange range, Activations& state) const override {
    DCHECK(state.next_layer == range.begin, "stages of a decode come in order");
    decoder().stack.decode(context, batch, range, state.x);
    state.next_layer = range.end;
  }

  // Of rows that are not scored, keys and values alone are wanted, and these are written.
  void finish(Context& context, const ForwardBatch& batch, const Activations& state,
              const TensorView& hidden) const override {
    DCHECK(state.next_layer == spec().num_decoder_layers, "a decode is finished behind its last layer");
    const TransformerStack& stack = decoder().stack;
    gather_rows(context, state.x, batch.logits_rows, hidden);
    stack.normalize(context, hidden);
    if (!decoder().head_transform.has_value()) return;
    const HeadTransform& transform = *decoder().head_transform;
    const Arena::Scope scope(context.arena);
    const TensorView dense = context.arena.tensor(DType::kFloat32, {hidden.dim(0), hidden.dim(1)});
    transform.dense.forward(context, hidden, {.activation = transform.activation}, dense);
    transform.norm.forward(context, dense, hidden);
  }

 private:
  const Encoder& encoder_of(const EncodeBatch& batch) const {
    if (parts_.splice_encoder.has_value() && has(batch.consumers, Consumers::kSplice)) return *parts_.splice_encoder;
    const bool is_media_alone = !batch.features.empty() && batch.input_ids.empty();
    return parts_.media_encoder.has_value() && is_media_alone ? *parts_.media_encoder : *parts_.encoder;
  }

  void settle_encoder() {
    int32_t num_layers = 0;
    for (const std::optional<Encoder>* encoder : {&parts_.encoder, &parts_.splice_encoder, &parts_.media_encoder}) {
      if (encoder->has_value()) num_layers = std::max(num_layers, (*encoder)->stack.num_layers());
    }
    parts_.spec.num_encoder_layers = num_layers;
  }

  void settle_decoder() {
    ModelSpec& spec = parts_.spec;
    spec.num_decoder_layers = parts_.decoder.has_value() ? parts_.decoder->stack.num_layers() : 0;
    spec.kv = parts_.decoder.has_value() ? parts_.decoder->stack.kv_specs() : std::vector<KvSpec>();
    if (!parts_.splices_rows) return;
    spec.encoded_for = spec.encoded_for | Consumers::kSplice;
    if (!parts_.decoder.has_value()) return;
    rows_spec_ = spec.kv.size();
    spec.kv.push_back({.kind = KvKind::kEncoderRows,
                       .owner = TableOwner::kItem,
                       .layers = {0},
                       .num_kv_heads = 1,
                       .head_dim = spec.d_model});
  }

  const Decoder& decoder() const {
    CHECK(parts_.decoder.has_value(), "the encoder's part decodes nothing");
    return *parts_.decoder;
  }

  std::shared_ptr<WeightMap> weights_;  // the embeddings read it
  EncoderDecoderParts parts_;
  size_t rows_spec_ = 0;  // in spec().kv, of models that splice
};

}  // namespace

std::unique_ptr<Model> make_encoder_decoder_model(EncoderDecoderParts parts, std::shared_ptr<WeightMap> weights) {
  return std::make_unique<EncoderDecoderModel>(std::move(parts), std::move(weights));
}

}  // namespace transept
