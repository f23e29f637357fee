#include "models/token_input.h"

#include <utility>

#include "ops/rows.h"

namespace transept {

void TokenInput::place(DeviceMemory& memory) {
  tokens = std::move(tokens).placed(memory);
  if (positions.has_value()) positions = std::move(*positions).placed(memory);
}

void TokenInput::forward(Context& context, View<int32_t> ids, View<int32_t> position_ids, const TensorView& x,
                         const Splices& splices, const TensorView& cache) const {
  tokens.look_up(context, ids, 0, scale, x);
  if (!splices.empty()) read_row_slots(context, cache, splices.slots, splices.block_size, splices.rows, x);
  if (norm_place == EmbeddingNorm::kBeforePositions) norm->forward(context, x, x);
  if (positions.has_value()) positions->add(context, position_ids, position_offset, x);
  if (norm_place == EmbeddingNorm::kAfterPositions) norm->forward(context, x, x);
}

}  // namespace transept
