// What is added to attention scores after scaling: scores = scale * q.k + bias. Either a tensor that the caller
// materialised, or a function of head and distance (key - query) that kernels compute where they add it
// (bias_kernel.h), so that no step holds anything of the scores' size.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/bias_kind.h"
#include "base/function_ref.h"
#include "tensor/tensor.h"

namespace transept {

// A value; it borrows what it points to.
struct AttentionBias {
  BiasKind kind = BiasKind::kNone;
  // kMaterialized: float32 [num_seqs, num_heads, query rows, keys]; element (s, h, i, j) is added to the score of
  // sequence s, head h, its i-th new row and key j (counted from the sequence's first key, cached ones included).
  // A stride of 0 broadcasts its axis.
  TensorView materialized;
  // kByDistance: of head 0 and distance 0, the next head's head_stride further on. kAlibi: slopes [num_heads].
  const float* values = nullptr;
  int64_t num_heads = 0, head_stride = 0, max_distance = 0;

  static AttentionBias none() { return {}; }
  static AttentionBias tensor(TensorView view) {
    CHECK(view.rank == 4 && view.dtype == DType::kFloat32);
    return {BiasKind::kMaterialized, view};
  }
  // -slope |distance|, a slope a head.
  static AttentionBias alibi(std::span<const float> slopes) {
    return {BiasKind::kAlibi, {}, slopes.data(), static_cast<int64_t>(slopes.size()), 1, 0};
  }

  // True if it is a function of the distance, so that kernels must know a query's position.
  bool needs_position() const { return kind == BiasKind::kByDistance || kind == BiasKind::kAlibi; }

  // What a kernel is told of sequence `seq`, head `head`, and its row_idx-th new row, which stands at `position`.
  RowBias of_row(int64_t seq, int64_t head, int64_t row_idx, int64_t position) const {
    if (kind != BiasKind::kMaterialized) return {kind, values + head * head_stride, 0, max_distance, position};
    const auto& stride = materialized.stride;
    return {kind, materialized.f32() + seq * stride[0] + head * stride[1] + row_idx * stride[2], stride[3], 0,
            position};
  }
};

// A bias that is any function of head and distance up to a farthest distance, and constant beyond: tabulated once, a
// short vector a head. Immutable, thread-safe; the AttentionBias that it gives borrows it.
class DistanceBias final {
 public:
  // value(head, distance) is asked for every distance in [-max_distance, max_distance].
  DistanceBias(int64_t num_heads, int64_t max_distance, FunctionRef<float(int64_t, int64_t)> value);

  AttentionBias bias() const;

 private:
  int64_t num_heads_, max_distance_;
  std::vector<float> values_;  // [num_heads, 2 (max_distance + kDistancePadding)]
};

// T5's relative positions (Raffel et al. 2020, section 2.1; transformers' T5Attention._relative_position_bucket): half
// of the buckets of a direction hold one distance each, the others ever more, up to max_distance.
struct T5Buckets {
  bool bidirectional = true;  // encoder: half of the buckets for keys after the query; decoder: none for those
  int64_t num_buckets = 32;
  int64_t max_distance = 128;

  // False: *why says which number is out of place, for a configuration's error.
  bool valid(std::string* why) const;
  // The bucket of key - query, in [0, num_buckets). REQUIRES: valid.
  int64_t bucket(int64_t distance) const;
};

// table: [num_buckets, num_heads], as checkpoints have it.
DistanceBias t5_bias(const T5Buckets& buckets, std::span<const float> table, int64_t num_heads);

}  // namespace transept
