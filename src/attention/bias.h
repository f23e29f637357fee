// What is added to attention scores after scaling: scores = scale * q.k + bias. A value; it borrows what it points to.
// A new score modification is a new kind here and one function in each backend's inner loop.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace transept {

struct AttentionBias {
  enum class Kind : uint8_t { kNone, kMaterialized };

  Kind kind = Kind::kNone;
  // kMaterialized: float32 [num_seqs, num_heads, query rows, keys]; element (s, h, i, j) is added to the score of
  // sequence s, head h, its i-th new row and key j (counted from the sequence's first key, cached ones included).
  // A stride of 0 broadcasts its axis.
  TensorView materialized;

  static AttentionBias none() { return {}; }
  static AttentionBias tensor(TensorView view) {
    CHECK(view.rank == 4 && view.dtype == DType::kFloat32);
    return {Kind::kMaterialized, view};
  }
};

}  // namespace transept
