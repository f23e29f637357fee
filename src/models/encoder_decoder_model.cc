#include "models/encoder_decoder_model.h"

#include <algorithm>

#include "ops/rows.h"

namespace transept {
namespace {

class EncoderDecoderModel final : public Model {
 public:
  EncoderDecoderModel(EncoderDecoderParts parts, std::shared_ptr<WeightMap> weights)
      : weights_(std::move(weights)), parts_(std::move(parts)) {
    parts_.spec.num_encoder_layers = parts_.encoder.num_layers();
    if (parts_.splice_encoder.has_value()) {
      parts_.spec.num_encoder_layers =
          std::max(parts_.spec.num_encoder_layers, parts_.splice_encoder->stack.num_layers());
    }
    parts_.spec.num_decoder_layers = parts_.decoder.num_layers();
    parts_.spec.kv = parts_.decoder.kv_specs();
    if (!parts_.splices_rows) return;
    rows_spec_ = parts_.spec.kv.size();
    parts_.spec.kv.push_back({.kind = KvKind::kEncoderRows,
                              .owner = TableOwner::kItem,
                              .layers = {0},
                              .num_kv_heads = 1,
                              .head_dim = parts_.spec.d_model});
  }

  const ModelSpec& spec() const override { return parts_.spec; }
  const LmHead& lm_head() const override { return parts_.lm_head; }

  void encode(Context& context, const EncodeBatch& batch, LayerRange range, Activations& state) const override {
    DCHECK(state.next_layer == range.begin, "stages of an encode come in order");
    const bool is_apart = parts_.splice_encoder.has_value() && has(batch.consumers, Consumers::kSplice);
    const EncoderInput& input = is_apart ? *parts_.splice_encoder->input : *parts_.encoder_input;
    const TransformerStack& stack = is_apart ? parts_.splice_encoder->stack : parts_.encoder;
    if (range.begin == 0) input.forward(context, batch, state.x);
    // The other encoder may have more layers.
    const LayerRange own{std::min(range.begin, stack.num_layers()), std::min(range.end, stack.num_layers())};
    stack.encode(context, batch, own, state.x);
    if (range.end == spec().num_encoder_layers) stack.normalize(context, state.x);
    state.next_layer = range.end;
  }

  void write_cross_kv(Context& context, const TensorView& rows, std::span<const AttentionMetadata> writes,
                      const KvCaches& kv, LayerRange range) const override {
    parts_.decoder.write_cross_kv(context, rows, writes, kv, range);
  }

  void embed(Context& context, const ForwardBatch& batch, const TensorView& x) const override {
    // A table of positions has one axis.
    const View<int32_t> positions = batch.positions.first(batch.input_ids.size());
    const TensorView cache = batch.splices.empty() ? TensorView() : batch.kv.specs[rows_spec_][0];
    parts_.decoder_input.forward(context, batch.input_ids, positions, x, batch.splices, cache);
  }

  void decode(Context& context, const ForwardBatch& batch, LayerRange range, Activations& state) const override {
    DCHECK(state.next_layer == range.begin, "stages of a decode come in order");
    parts_.decoder.decode(context, batch, range, state.x);
    state.next_layer = range.end;
  }

  // Of rows that are not scored, keys and values alone are wanted, and these are written.
  void finish(Context& context, const ForwardBatch& batch, const Activations& state,
              const TensorView& hidden) const override {
    DCHECK(state.next_layer == spec().num_decoder_layers, "a decode is finished behind its last layer");
    gather_rows(context, state.x, batch.logits_rows, hidden);
    parts_.decoder.normalize(context, hidden);
  }

 private:
  std::shared_ptr<WeightMap> weights_;  // the embeddings read it
  EncoderDecoderParts parts_;
  size_t rows_spec_ = 0;  // in spec().kv, of models that splice
};

}  // namespace

std::unique_ptr<Model> make_encoder_decoder_model(EncoderDecoderParts parts, std::shared_ptr<WeightMap> weights) {
  return std::make_unique<EncoderDecoderModel>(std::move(parts), std::move(weights));
}

}  // namespace transept
