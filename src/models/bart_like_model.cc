#include "models/bart_like_model.h"

#include <cstring>

namespace transept {
namespace {

class BartLikeModel final : public Model {
 public:
  BartLikeModel(BartLikeParts parts, std::shared_ptr<WeightMap> weights, const AttentionBackend& attention)
      : weights_(std::move(weights)), attention_(attention), parts_(std::move(parts)) {}

  const ModelSpec& spec() const override { return parts_.spec; }
  const LmHead& lm_head() const override { return parts_.lm_head; }

  void encode(Context& context, const EncodeBatch& batch, LayerRange range, EncodeState& state) const override {
    Arena::Scope scope(context.arena);
    const TensorView& x = state.hidden;
    DCHECK(state.next_layer == range.begin, "slices of an encode come in order");
    if (range.begin == 0) parts_.encoder_input->forward(context, batch, x);
    const Turn turn(context, parts_.encoder_rope, batch.positions);
    for (int32_t i = range.begin; i < range.end; ++i) {
      const BartLikeEncoderLayer& layer = parts_.encoder_layers[static_cast<size_t>(i)];
      layer.attention_sum.run(context, x, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
        layer.attention.forward(context, attention_, AttentionType::kEncoder, batch.attention, {}, in, residual, out,
                                nullptr, turn.get());
      });
      run_feed_forward(context, layer, x);
    }
    state.next_layer = range.end;
    const bool is_last = range.end == spec().num_encoder_layers;
    if (is_last && parts_.encoder_norm.has_value()) parts_.encoder_norm->forward(context, x, x);
  }

  void write_cross_kv(Context& context, const EncoderOutput& output, const AttentionMetadata& cross, const KvCaches& kv,
                      LayerRange range) const override {
    for (int32_t i = range.begin; i < range.end; ++i) {
      const size_t layer = static_cast<size_t>(i);
      parts_.decoder_layers[layer].cross.write_kv(context, attention_, cross, kv.cross_layers[layer], output.hidden);
    }
  }

  void decode(Context& context, const ForwardBatch& batch, LayerRange range, const TensorView& hidden) const override {
    Arena::Scope scope(context.arena);
    const TensorView x = context.arena.tensor(DType::kFloat32, {batch.num_tokens(), spec().d_model});
    parts_.decoder_input.forward(context, batch.input_ids, batch.positions, x);
    const Turn turn(context, parts_.decoder_rope, batch.positions);
    for (int32_t i = range.begin; i < range.end; ++i) run_decoder_layer(context, batch, i, turn, x);
    if (!context.dry_run) {
      for (size_t i = 0; i < batch.logits_rows.size(); ++i) {
        std::memcpy(hidden.row(static_cast<int64_t>(i)), x.row(batch.logits_rows[i]),
                    static_cast<size_t>(spec().d_model) * sizeof(float));
      }
    }
    // Of rows that nobody scores, keys and values alone are wanted, and these are written.
    if (parts_.decoder_norm.has_value()) parts_.decoder_norm->forward(context, hidden, hidden);
  }

 private:
  // The angles of a step's positions, if any are turned.
  class Turn {
   public:
    Turn(Context& context, std::span<const float> frequencies, View<int32_t> positions) {
      if (!frequencies.empty()) angles_ = rope_angles(context, frequencies, positions);
    }
    const RopeAngles* get() const { return angles_.has_value() ? &*angles_ : nullptr; }

   private:
    std::optional<RopeAngles> angles_;
  };

  void run_decoder_layer(Context& context, const ForwardBatch& batch, int32_t index, const Turn& turn,
                         const TensorView& x) const {
    const size_t l = static_cast<size_t>(index);
    const BartLikeDecoderLayer& layer = parts_.decoder_layers[l];
    layer.attention_sum.run(context, x, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
      layer.attention.forward(context, attention_, AttentionType::kDecoder, batch.self, batch.kv.self_layers[l], in,
                              residual, out, nullptr, turn.get());
    });
    LayerCapture capture(batch.capture, index);
    layer.cross_sum.run(context, x, [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
      layer.cross.forward(context, attention_, batch.cross, batch.kv.cross_layers[l], in, residual, out, capture.get());
    });
    run_feed_forward(context, layer, x);
  }

  template <typename Layer>
  static void run_feed_forward(Context& context, const Layer& layer, const TensorView& x) {
    layer.feed_forward_sum.run(context, x,
                               [&](const TensorView& in, const TensorView& residual, const TensorView& out) {
                                 layer.feed_forward.forward(context, in, residual, out);
                               });
  }

  std::shared_ptr<WeightMap> weights_;  // the embeddings read it
  const AttentionBackend& attention_;
  BartLikeParts parts_;
};

}  // namespace

void BartLikeInput::forward(Context& context, View<int32_t> ids, View<int32_t> position_ids,
                            const TensorView& x) const {
  tokens.look_up(context, ids, 0, scale, x);
  if (norm_place == EmbeddingNorm::kBeforePositions) norm->forward(context, x, x);
  if (positions.has_value()) positions->add(context, position_ids, position_offset, x);
  if (norm_place == EmbeddingNorm::kAfterPositions) norm->forward(context, x, x);
}

std::unique_ptr<Model> make_bart_like_model(BartLikeParts parts, std::shared_ptr<WeightMap> weights,
                                            const AttentionBackend& attention) {
  return std::make_unique<BartLikeModel>(std::move(parts), std::move(weights), attention);
}

}  // namespace transept
