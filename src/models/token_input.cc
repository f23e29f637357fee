#include "models/token_input.h"

namespace transept {

void TokenInput::forward(Context& context, View<int32_t> ids, View<int32_t> position_ids, const TensorView& x) const {
  tokens.look_up(context, ids, 0, scale, x);
  if (norm_place == EmbeddingNorm::kBeforePositions) norm->forward(context, x, x);
  if (positions.has_value()) positions->add(context, position_ids, position_offset, x);
  if (norm_place == EmbeddingNorm::kAfterPositions) norm->forward(context, x, x);
}

}  // namespace transept
