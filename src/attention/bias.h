// A bias of attention scores: scores = scale * q.k + bias. Either a tensor that the caller materialised, or a function
// of head and distance (key - query) that kernels compute inside their loops (bias_kernel.h), so that no step holds
// memory of the scores' size.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/bias_kind.h"
#include "base/function_ref.h"
#include "tensor/device_floats.h"
#include "tensor/tensor.h"

namespace transept {

// A value. It borrows its tensor and values. Thread-safe to read.
struct AttentionBias {
  BiasKind kind = BiasKind::kNone;
  // kMaterialized: float32 [num_seqs, num_heads, query rows, keys]. Element (s, h, i, j) is added to the score of
  // sequence s, head h, its i-th new row and key j (counted from the sequence's first key, cached ones included). A
  // stride of 0 broadcasts its axis.
  TensorView materialized;
  // kByDistance: the value of head 0 and distance 0; the next head's is head_stride further. kAlibi: slopes
  // [num_heads].
  const float* values = nullptr;
  int64_t num_heads = 0, head_stride = 0, max_distance = 0;

  static AttentionBias none() { return {}; }
  static AttentionBias tensor(TensorView view) {
    CHECK(view.rank == 4 && view.dtype == DType::kFloat32);
    return {BiasKind::kMaterialized, view};
  }
  // -slope |distance|, with one slope a head.
  static AttentionBias alibi(std::span<const float> slopes) {
    return {BiasKind::kAlibi, {}, slopes.data(), static_cast<int64_t>(slopes.size()), 1, 0};
  }

  // Returns whether the bias is a function of the distance: kernels then need a query's position.
  bool needs_position() const { return kind == BiasKind::kByDistance || kind == BiasKind::kAlibi; }

  // Returns the bias of sequence `seq`, head `head`, and its row_idx-th new row, whose position is `position`.
  RowBias of_row(int64_t seq, int64_t head, int64_t row_idx, int64_t position) const {
    if (kind != BiasKind::kMaterialized) return {kind, values + head * head_stride, 0, max_distance, position};
    const auto& stride = materialized.stride;
    return {kind, materialized.f32() + seq * stride[0] + head * stride[1] + row_idx * stride[2], stride[3], 0,
            position};
  }
};

// A bias that is any function of head and distance up to a farthest distance, and constant beyond. Tabulated once, a
// short vector a head. Immutable, thread-safe.
class DistanceBias final {
 public:
  // Calls value(head, distance) for every distance in [-max_distance, max_distance]. REQUIRES: num_heads > 0,
  // max_distance >= 0.
  DistanceBias(int64_t num_heads, int64_t max_distance, FunctionRef<float(int64_t, int64_t)> value,
               DeviceMemory& memory = host_memory());

  // Returns a bias that borrows this table.
  AttentionBias bias() const;

 private:
  int64_t num_heads_, max_distance_;
  DeviceFloats values_;  // [num_heads, 2 (max_distance + kDistancePadding)]
};

// T5's relative positions (Raffel et al. 2020, section 2.1; transformers' T5Attention._relative_position_bucket). Half
// of the buckets of a direction hold one distance each; the others hold ever more, up to max_distance.
struct T5Buckets {
  bool bidirectional = true;  // encoder: half of the buckets for keys after the query; decoder: none for those
  int64_t num_buckets = 32;
  int64_t max_distance = 128;

  // Returns whether the numbers are possible. False: *why names the wrong one, for a configuration's error.
  bool valid(std::string* why) const;
  // Returns the bucket of distance key - query, in [0, num_buckets). REQUIRES: valid.
  int64_t bucket(int64_t distance) const;
};

// Returns the bias of a T5 table: [num_buckets, num_heads], the layout of checkpoints. REQUIRES: valid buckets, and a
// table of that size.
DistanceBias t5_bias(const T5Buckets& buckets, std::span<const float> table, int64_t num_heads,
                     DeviceMemory& memory = host_memory());

}  // namespace transept
