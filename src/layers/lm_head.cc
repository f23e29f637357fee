#include "layers/lm_head.h"

namespace transept {

StatusOr<LmHead> LmHead::load(WeightMap& weights, const std::string& weight, int64_t vocab_size, int64_t dim,
                              std::vector<float> bias, const PackOptions& packing) {
  CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == vocab_size);
  LinearSpec spec{{{weight, "", vocab_size}}, dim};
  spec.split = Split::kOutputs;
  spec.unit = kPieceColumns;
  const bool is_elsewhere = packing.elsewhere != nullptr && packing.elsewhere->has_output_layer;
  ASSIGN_OR_RETURN(Linear linear, Linear::load(weights, spec, is_elsewhere ? packing.of_elsewhere() : packing));
  const IndexRange own = share_of(vocab_size, kPieceColumns, packing.ranks);
  if (!bias.empty()) bias = std::vector<float>(bias.begin() + own.begin, bias.begin() + own.end);
  linear.set_bias(DeviceFloats(std::move(bias), weights.memory()));
  return LmHead(std::move(linear), vocab_size, packing.ranks);
}

void LmHead::logits(Context& context, const TensorView& hidden, const TensorView& out) const {
  linear_.forward(context, hidden, {}, out.columns(ids().begin, ids().end));
}

void LmHead::logits_by_ids(Context& context, const TensorView& hidden, const TensorView& out,
                           FunctionRef<void(const ColumnPiece&)> then) const {
  const IndexRange own = ids();
  const bool is_whole = out.dim(1) == vocab_size_ && out.dim(0) == hidden.dim(0);
  const TensorView own_out = is_whole ? out.columns(own.begin, own.end) : out;
  linear_.forward_by_columns(context, hidden, own_out, [&](ColumnPiece piece) {
    piece.begin += own.begin, piece.end += own.begin;
    then(piece);
  });
}

void LmHead::chosen_logits(Context& context, std::span<const ChosenProduct> products) const {
  CHECK(ranks_.count == 1, "outputs of other ranks cannot be copied");
  if (!linear_.rounds_inputs()) return ChosenOutputs::forward(context, linear_, products);
  for (ChosenProduct product : products) {
    const Arena::Scope scope(context.arena);
    product.x = linear_.seen_inputs(context, product.x);
    ChosenOutputs::forward(context, linear_, std::span(&product, 1));
  }
}

}  // namespace transept
