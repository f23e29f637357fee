// How token ids become the first hidden rows of a stack: table, scale, positions, and the norm behind them. One for
// each side that reads tokens. Owned by the model. Immutable after loading, so thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "layers/embedding.h"
#include "layers/norm.h"
#include "models/encoder_input.h"

namespace transept {

// Whether a norm stands behind the token embedding, and on which side of adding the positions.
enum class EmbeddingNorm : uint8_t { kNone, kAfterPositions, kBeforePositions };

struct TokenInput {
  Embedding tokens;
  std::optional<Embedding> positions = {};  // none: the layers know the positions, by rotation or bias
  int32_t position_offset = 0;              // the table's row of position 0
  float scale = 1;                          // of the token's row
  EmbeddingNorm norm_place = EmbeddingNorm::kNone;
  std::optional<Norm> norm = {};  // unless norm_place is kNone

  // Puts the tables in the device's memory (Embedding::placed()): of a decoder, which reads few rows often.
  void place(DeviceMemory& memory);

  // x: [ids.size(), dim] float32, overwritten. Rows of `splices` come from `cache` (ops/rows.h) instead of the table;
  // the scale is not theirs, positions and norm are. REQUIRES: ids below the table's rows; position_ids as many as ids.
  void forward(Context& context, View<int32_t> ids, View<int32_t> position_ids, const TensorView& x,
               const Splices& splices = {}, const TensorView& cache = {}) const;
};

// Token ids as an encoder's input.
class TokenEncoderInput final : public EncoderInput {
 public:
  explicit TokenEncoderInput(TokenInput input) : input_(std::move(input)) {}

  void forward(Context& context, const EncodeBatch& batch, const TensorView& x) const override {
    input_.forward(context, batch.input_ids, batch.positions, x);
  }

 private:
  TokenInput input_;
};

}  // namespace transept
