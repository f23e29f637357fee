// Reductions over one row, and elementwise functions of a row, written once for every level (ops/kernels.h has the rule
// for such files). The row's length and the level fix the order of every sum. Functions as in OpKernels
// (ops/kernels.h).
#pragma once

#include <math.h>

#include "ops/kernels.h"
#include "ops/vec_math.h"

namespace transept {

// Calls body(v, i, lanes) with the row's vectors; the last may have fewer lanes (zeros above).
template <class V, class Body>
inline void for_each_vec(const float* x, int64_t n, Body&& body) {
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) body(V::load(x + i), i, V::kLanes);
  if (i < n) {
    const int lanes = static_cast<int>(n - i);
    body(V::load_n(x + i, lanes), i, lanes);
  }
}

// for_each_vec with body(v, i, lanes, turn), where turn alternates between 0 and 1: it chooses one of two sums, so that
// neither waits for the other. (A counted turn would put the sums into memory, and each would wait for a store.)
template <class V, class Body>
inline void for_each_vec_by_turns(const float* x, int64_t n, Body&& body) {
  int64_t i = 0;
  for (; i + 2 * V::kLanes <= n; i += 2 * V::kLanes) {
    body(V::load(x + i), i, V::kLanes, 0);
    body(V::load(x + i + V::kLanes), i + V::kLanes, V::kLanes, 1);
  }
  int turn = 0;
  for_each_vec<V>(x + i, n - i, [&](typename V::Reg v, int64_t j, int lanes) {
    if (turn == 0) {
      body(v, i + j, lanes, 0);
    } else {
      body(v, i + j, lanes, 1);
    }
    turn = 1;
  });
}

template <class V>
float sum_row(const float* x, int64_t n) {
  using Reg = typename V::Reg;
  Reg sum[2] = {V::zero(), V::zero()};
  for_each_vec_by_turns<V>(x, n, [&](Reg v, int64_t, int, int turn) { sum[turn] = V::add(sum[turn], v); });
  return V::reduce_add(V::add(sum[0], sum[1]));
}

// Returns the sum of (x - mean)^2.
template <class V>
float deviation_row(const float* x, int64_t n, float mean) {
  using Reg = typename V::Reg;
  const Reg m = V::set1(mean);
  Reg sum[2] = {V::zero(), V::zero()};
  for_each_vec_by_turns<V>(x, n, [&](Reg v, int64_t, int lanes, int turn) {
    const Reg d = V::keep_first(V::sub(v, m), lanes, 0);
    sum[turn] = V::fma(d, d, sum[turn]);
  });
  return V::reduce_add(V::add(sum[0], sum[1]));
}

// Sets y = (x - mean) / sqrt(variance + epsilon) * weight + bias.
template <class V>
void normalize_row(const float* x, int64_t n, const NormStatistics& of, const float* weight, const float* bias,
                   float* y) {
  using Reg = typename V::Reg;
  const Reg mean = V::set1(of.mean), scale = V::set1(1.0f / sqrtf(of.variance + of.epsilon));
  for_each_vec<V>(x, n, [&](Reg v, int64_t i, int lanes) {
    const Reg normal = V::mul(V::sub(v, mean), scale);
    if (lanes == V::kLanes) {
      V::store(y + i, V::fma(normal, V::load(weight + i), V::load(bias + i)));
    } else {
      V::store_n(y + i, V::fma(normal, V::load_n(weight + i, lanes), V::load_n(bias + i, lanes)), lanes);
    }
  });
}

template <class V>
void layer_norm_row(const float* x, int64_t n, const float* weight, const float* bias, float epsilon, float* y) {
  const float mean = sum_row<V>(x, n) / static_cast<float>(n);
  const float variance = deviation_row<V>(x, n, mean) / static_cast<float>(n);
  normalize_row<V>(x, n, {mean, variance, epsilon}, weight, bias, y);
}

template <class V>
void rms_norm_row(const float* x, int64_t n, const float* weight, float epsilon, float* y) {
  using Reg = typename V::Reg;
  Reg sum[2] = {V::zero(), V::zero()};
  for_each_vec_by_turns<V>(x, n, [&](Reg v, int64_t, int, int turn) { sum[turn] = V::fma(v, v, sum[turn]); });
  const float mean_square = V::reduce_add(V::add(sum[0], sum[1])) / static_cast<float>(n);
  const Reg scale = V::set1(1.0f / sqrtf(mean_square + epsilon));
  for_each_vec<V>(x, n, [&](Reg v, int64_t i, int lanes) {
    if (lanes == V::kLanes) {
      V::store(y + i, V::mul(V::mul(v, scale), V::load(weight + i)));
    } else {
      V::store_n(y + i, V::mul(V::mul(v, scale), V::load_n(weight + i, lanes)), lanes);
    }
  });
}

// Returns the largest entry, ignoring NaN. -inf if there is none.
template <class V>
inline float max_of_row(const float* x, int64_t n) {
  using Reg = typename V::Reg;
  const float lowest = -HUGE_VALF;
  Reg best[2] = {V::set1(lowest), V::set1(lowest)};
  for_each_vec_by_turns<V>(x, n, [&](Reg v, int64_t, int lanes, int turn) {
    best[turn] = V::max(V::keep_first(v, lanes, lowest), best[turn]);  // second operand wins over NaN
  });
  return V::reduce_max(V::max(best[0], best[1]));
}

template <class V>
float log_sum_exp_max_row(const float* x, int64_t n, float* max) {
  using Reg = typename V::Reg;
  *max = max_of_row<V>(x, n);
  const Reg shift = V::set1(*max);
  Reg sum[2] = {V::zero(), V::zero()};
  for_each_vec_by_turns<V>(x, n, [&](Reg v, int64_t, int lanes, int turn) {
    const Reg e = vec_exp_of_negative<V>(V::sub(v, shift));
    sum[turn] = V::add(sum[turn], V::keep_first(e, lanes, 0));
  });
  return V::reduce_add(V::add(sum[0], sum[1]));
}

template <class V>
float max_row(const float* x, int64_t n, bool* has_strange) {
  using Reg = typename V::Reg;
  const float lowest = -HUGE_VALF;
  const Reg least = V::set1(-0x1.fffffep127f);
  Reg best[2] = {V::set1(lowest), V::set1(lowest)}, strange[2] = {V::zero(), V::zero()};
  for_each_vec_by_turns<V>(x, n, [&](Reg v, int64_t, int lanes, int turn) {
    best[turn] = V::max(V::keep_first(v, lanes, lowest), best[turn]);    // second operand wins over NaN
    strange[turn] = V::fma(V::max(least, v), V::zero(), strange[turn]);  // NaN from NaN and +inf, not from -inf
  });
  *has_strange = V::reduce_add(V::add(strange[0], strange[1])) != 0;
  return V::reduce_max(V::max(best[0], best[1]));
}

template <class V>
int64_t find_equal_row(const float* x, int64_t n, float value) {
  const typename V::Reg wanted = V::set1(value);
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const uint32_t mask = V::equal_mask(V::load(x + i), wanted);
    if (mask != 0) return i + __builtin_ctz(mask);
  }
  if (i < n) {
    const int lanes = static_cast<int>(n - i);
    const uint32_t mask = V::equal_mask(V::load_n(x + i, lanes), wanted) & ((1u << lanes) - 1);
    if (mask != 0) return i + __builtin_ctz(mask);
  }
  return -1;
}

template <class V>
int64_t arg_max_row(const float* x, int64_t n) {
  return find_equal_row<V>(x, n, max_of_row<V>(x, n));  // -1: nothing but NaN
}

template <class V>
int32_t find_above_row(const float* x, int32_t n, float value, int32_t* places) {
  const typename V::Reg bound = V::set1(value);
  int32_t count = 0;
  const auto list = [&](uint32_t mask, int32_t i) {
    for (; mask != 0; mask &= mask - 1) places[count++] = i + __builtin_ctz(mask);
  };
  int32_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) list(V::greater_mask(V::load(x + i), bound), i);
  if (i < n) list(V::greater_mask(V::load_n(x + i, n - i), bound) & ((1u << (n - i)) - 1), i);
  return count;
}

template <class V>
void activate_row(Activation activation, const float* x, int64_t n, float* y) {
  with_activation<V>(activation, [&](auto&& act) {
    for_each_vec<V>(x, n, [&](typename V::Reg v, int64_t i, int lanes) { V::store_n(y + i, act(v), lanes); });
  });
}

template <class V>
void gated_activation_row(Activation activation, const float* gate, const float* x, int64_t n, float* y) {
  with_activation<V>(activation, [&](auto&& act) {
    for_each_vec<V>(gate, n, [&](typename V::Reg g, int64_t i, int lanes) {
      if (lanes == V::kLanes) {
        V::store(y + i, V::mul(act(g), V::load(x + i)));
      } else {
        V::store_n(y + i, V::mul(act(g), V::load_n(x + i, lanes)), lanes);
      }
    });
  });
}

}  // namespace transept
