// Biases of scores, one function a kind, written once for every level (ops/kernels.h has the rule for such files). A
// new score modification is a BiasKind (bias_kind.h), its values in AttentionBias (bias.h), and here a function and a
// line in with_bias. The backends do not change: cpu calls with_bias inside its loop over keys, and the reference
// materialises it.
//
// Each function returns the bias of keys [key, key + V::kLanes) for one query. Only the first `num_keys` of them exist;
// the values of the others are unused. A bias depends on (head, query, key) alone, so texts do not depend on the batch.
#pragma once

#include <stdint.h>

#include "attention/bias_kind.h"

namespace transept {

template <class V>
inline typename V::Reg materialized_bias(const RowBias& bias, int64_t key, int64_t num_keys) {
  const float* values = bias.values + key * bias.key_stride;
  const int lanes = num_keys < V::kLanes ? static_cast<int>(num_keys) : V::kLanes;
  if (bias.key_stride == 1) return lanes == V::kLanes ? V::load(values) : V::load_n(values, lanes);
  float spread[V::kLanes];
  for (int i = 0; i < V::kLanes; ++i) spread[i] = i < lanes ? values[i * bias.key_stride] : 0.0f;
  return V::load(spread);
}

// Neighbouring keys have neighbouring distances, so the bias of a vector of keys is a slice of the head's table. Beyond
// max_distance the bias is constant: the slice comes from the padding.
template <class V>
inline typename V::Reg bias_by_distance(const RowBias& bias, int64_t key, int64_t /*num_keys*/) {
  static_assert(V::kLanes <= kDistancePadding);
  const int64_t lowest = -bias.max_distance - kDistancePadding;
  int64_t distance = key - bias.position;
  distance = distance < lowest ? lowest : distance;
  distance = distance > bias.max_distance ? bias.max_distance : distance;
  return V::load(bias.values + distance);
}

// Returns -slope |distance| (Press, Smith, Lewis: Train Short, Test Long, 2022).
template <class V>
inline typename V::Reg alibi_bias(const RowBias& bias, int64_t key, int64_t /*num_keys*/) {
  float distances[V::kLanes];
  for (int i = 0; i < V::kLanes; ++i) distances[i] = static_cast<float>(key + i - bias.position);
  return V::mul(V::set1(-*bias.values), V::abs(V::load(distances)));
}

// Returns use(finish), where finish(scores, scale, key, num_keys) is scale * scores + bias for a vector of keys. It is
// explicitly one multiply-add: a compiler would choose one in some loops and two in others, and a row's bits would
// depend on the loop. The kind is tested once for a run of keys: `use` is compiled for each kind.
template <class V, class Use>
inline float with_bias(const RowBias& bias, Use&& use) {
  using Reg = typename V::Reg;
  switch (bias.kind) {
    case BiasKind::kNone: break;
    case BiasKind::kMaterialized:
      return use([&](Reg s, Reg scale, int64_t key, int64_t n) {
        return V::fma(s, scale, materialized_bias<V>(bias, key, n));
      });
    case BiasKind::kByDistance:
      return use([&](Reg s, Reg scale, int64_t key, int64_t n) {
        return V::fma(s, scale, bias_by_distance<V>(bias, key, n));
      });
    case BiasKind::kAlibi:
      return use(
          [&](Reg s, Reg scale, int64_t key, int64_t n) { return V::fma(s, scale, alibi_bias<V>(bias, key, n)); });
  }
  return use([](Reg s, Reg scale, int64_t, int64_t) { return V::mul(s, scale); });
}

}  // namespace transept
