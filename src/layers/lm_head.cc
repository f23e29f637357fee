#include "layers/lm_head.h"

namespace transept {

StatusOr<LmHead> LmHead::load(WeightMap& weights, const std::string& weight, int64_t vocab_size, int64_t dim,
                              std::vector<float> bias, const PackOptions& packing) {
  CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == vocab_size);
  ASSIGN_OR_RETURN(Linear linear, Linear::load(weights, {{{weight, "", vocab_size}}, dim}, packing));
  linear.set_bias(DeviceFloats(std::move(bias), weights.memory()));
  return LmHead(std::move(linear));
}

void LmHead::logits(Context& context, const TensorView& hidden, const TensorView& out) const {
  linear_.forward(context, hidden, {}, out);
}

void LmHead::logits_by_ids(Context& context, const TensorView& hidden, const TensorView& out,
                           FunctionRef<void(const ColumnPiece&)> then) const {
  linear_.forward_by_columns(context, hidden, out, then);
}

void LmHead::chosen_logits(Context& context, std::span<const ChosenProduct> products) const {
  if (!linear_.rounds_inputs()) return ChosenOutputs::forward(context, linear_, products);
  for (ChosenProduct product : products) {
    const Arena::Scope scope(context.arena);
    product.x = linear_.seen_inputs(context, product.x);
    ChosenOutputs::forward(context, linear_, std::span(&product, 1));
  }
}

}  // namespace transept
