#include "models/encoder_decoder_model.h"

#include "ops/rows.h"

namespace transept {
namespace {

class EncoderDecoderModel final : public Model {
 public:
  EncoderDecoderModel(EncoderDecoderParts parts, std::shared_ptr<WeightMap> weights)
      : weights_(std::move(weights)), parts_(std::move(parts)) {
    parts_.spec.num_encoder_layers = parts_.encoder.num_layers();
    parts_.spec.num_decoder_layers = parts_.decoder.num_layers();
    parts_.spec.kv = parts_.decoder.kv_specs();
  }

  const ModelSpec& spec() const override { return parts_.spec; }
  const LmHead& lm_head() const override { return parts_.lm_head; }

  void encode(Context& context, const EncodeBatch& batch, LayerRange range, Activations& state) const override {
    DCHECK(state.next_layer == range.begin, "stages of an encode come in order");
    if (range.begin == 0) parts_.encoder_input->forward(context, batch, state.x);
    parts_.encoder.encode(context, batch, range, state.x);
    if (range.end == spec().num_encoder_layers) parts_.encoder.normalize(context, state.x);
    state.next_layer = range.end;
  }

  void write_cross_kv(Context& context, const EncoderOutput& output, const AttentionMetadata& cross, const KvCaches& kv,
                      LayerRange range) const override {
    parts_.decoder.write_cross_kv(context, output.hidden, cross, kv, range);
  }

  void embed(Context& context, const ForwardBatch& batch, const TensorView& x) const override {
    parts_.decoder_input.forward(context, batch.input_ids, batch.positions, x);
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
};

}  // namespace

std::unique_ptr<Model> make_encoder_decoder_model(EncoderDecoderParts parts, std::shared_ptr<WeightMap> weights) {
  return std::make_unique<EncoderDecoderModel>(std::move(parts), std::move(weights));
}

}  // namespace transept
