// Functions of vectors, written once for every level. V: a Vec of vec_*.h. All are templates over V, so that no two
// levels share a symbol (rule: ops/kernels.h). Errors are against exact values, in float32 arithmetic; a fit's error is
// that of its polynomial alone.
#pragma once

#include "ops/activation_kind.h"

namespace transept {

// Returns exp(x), relative error < 3e-7; 0 below -87.3, exp(88) above 88, NaN for NaN. Cody and Waite: x = n ln 2 + r,
// then 1 + r + r^2 q(r), q a minimax fit on |r| <= ln 2 / 2 (error 4e-9).
template <class V>
inline typename V::Reg vec_exp(typename V::Reg x) {
  const typename V::Reg low = V::set1(-87.3f);
  const typename V::Reg clamped = V::min(V::set1(88.0f), V::max(low, x));  // in this order NaN passes
  const typename V::Reg n = V::round(V::mul(clamped, V::set1(1.44269504f)));
  // ln 2 in two pieces; the product of the first with n is exact, because it has few bits.
  typename V::Reg r = V::fnma(n, V::set1(0.693359375f), clamped);
  r = V::fnma(n, V::set1(-2.12194440e-4f), r);
  typename V::Reg q = V::set1(0.0013814599f);
  q = V::fma(q, r, V::set1(0.008368717f));
  q = V::fma(q, r, V::set1(0.04166839f));
  q = V::fma(q, r, V::set1(0.16666521f));
  q = V::fma(q, r, V::set1(0.49999994f));
  const typename V::Reg y = V::add(V::fma(V::mul(r, r), q, r), V::set1(1.0f));
  return V::select_lt(x, low, V::zero(), V::scale(y, n));
}

// Returns exp(x) for x <= 0, for sums of many, with half the work: relative error < 3e-7 + 1e-7 |x|, 1 for 0, at least
// 2^-126, NaN for NaN. 2^f = 1 + f q(f), q a minimax fit on |f| <= 1/2 (error 1.1e-7).
template <class V>
inline typename V::Reg vec_exp_of_negative(typename V::Reg x) {
  const typename V::Reg y = V::max(V::set1(-126.0f), V::mul(x, V::set1(1.44269504f)));  // in this order NaN passes
  const typename V::Reg n = V::round(y), f = V::sub(y, n);
  typename V::Reg q = V::set1(0.001326472731307149f);
  q = V::fma(q, f, V::set1(0.009671512991189957f));
  q = V::fma(q, f, V::set1(0.05550733581185341f));
  q = V::fma(q, f, V::set1(0.24022242426872253f));
  q = V::fma(q, f, V::set1(0.6931470036506653f));
  return V::scale(V::fma(q, f, V::set1(1.0f)), n);
}

// Returns x Phi(x) = max(x, 0) - |x| Phi(-|x|), with Phi(-a) = exp(-a^2 / 2) P(t), t = 1 / (1 + 0.23 a), and P a
// minimax fit of erfcx(a / sqrt 2) / 2 on [0, 14] (relative error 9e-8): right in the tails too. Absolute error < 5e-7
// for |x| < 8.
template <class V>
inline typename V::Reg vec_gelu(typename V::Reg x) {
  const typename V::Reg a = V::abs(x);
  const typename V::Reg t = V::div(V::set1(1.0f), V::fma(a, V::set1(0.23f), V::set1(1.0f)));
  typename V::Reg p = V::set1(-0.07846608f);
  p = V::fma(p, t, V::set1(0.29040748f));
  p = V::fma(p, t, V::set1(-0.27811322f));
  p = V::fma(p, t, V::set1(0.30145687f));
  p = V::fma(p, t, V::set1(-0.03290896f));
  p = V::fma(p, t, V::set1(0.119509116f));
  p = V::fma(p, t, V::set1(0.08576424f));
  p = V::fma(p, t, V::set1(0.09237826f));
  p = V::fma(p, t, V::set1(-2.7750271e-05f));
  const typename V::Reg tail = V::mul(vec_exp<V>(V::mul(V::mul(a, a), V::set1(-0.5f))), p);
  return V::fnma(a, tail, V::max(V::zero(), x));
}

// Returns x / (1 + exp(-z)).
template <class V>
inline typename V::Reg vec_times_sigmoid(typename V::Reg x, typename V::Reg z) {
  return V::div(x, V::add(V::set1(1.0f), vec_exp<V>(V::sub(V::zero(), z))));
}

// Returns tanh(x), relative error < 3e-7: near 0, x + x^3 p(x^2), p a minimax fit on [0, 0.625] (error 9e-9); beyond, 1
// - 2 / (1 + exp(2 |x|)) with the sign of x.
template <class V>
inline typename V::Reg vec_tanh(typename V::Reg x) {
  const typename V::Reg a = V::abs(x), z = V::mul(x, x), one = V::set1(1.0f);
  typename V::Reg p = V::set1(-0.00570498547f);
  p = V::fma(p, z, V::set1(0.0206390861f));
  p = V::fma(p, z, V::set1(-0.0537397154f));
  p = V::fma(p, z, V::set1(0.133314416f));
  p = V::fma(p, z, V::set1(-0.333332807f));
  const typename V::Reg near = V::fma(V::mul(x, z), p, x);
  const typename V::Reg far = V::sub(one, V::div(V::set1(2.0f), V::add(one, vec_exp<V>(V::add(a, a)))));
  const typename V::Reg signed_far = V::select_lt(x, V::zero(), V::sub(V::zero(), far), far);
  return V::select_lt(a, V::set1(0.625f), near, signed_far);
}

template <class V, Activation kActivation>
inline typename V::Reg vec_activate(typename V::Reg x) {
  if constexpr (kActivation == Activation::kRelu) {
    return V::max(V::zero(), x);
  } else if constexpr (kActivation == Activation::kGelu) {
    return vec_gelu<V>(x);
  } else if constexpr (kActivation == Activation::kGeluTanh) {
    // 1 + tanh(u) = 2 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
    const typename V::Reg inner = V::fma(V::mul(V::mul(x, x), x), V::set1(0.044715f), x);
    return vec_times_sigmoid<V>(x, V::mul(inner, V::set1(1.59576912f)));
  } else if constexpr (kActivation == Activation::kSilu) {
    return vec_times_sigmoid<V>(x, x);
  } else if constexpr (kActivation == Activation::kTanh) {
    return vec_tanh<V>(x);
  } else if constexpr (kActivation == Activation::kQuickGelu) {
    return vec_times_sigmoid<V>(x, V::mul(x, V::set1(1.702f)));
  } else {
    return x;
  }
}

// Calls body(activate), where activate(vector) applies `activation`.
template <class V, class Body>
inline void with_activation(Activation activation, Body&& body) {
  using Reg = typename V::Reg;
  switch (activation) {
    case Activation::kNone: return body([](Reg v) { return v; });
    case Activation::kRelu: return body([](Reg v) { return vec_activate<V, Activation::kRelu>(v); });
    case Activation::kGelu: return body([](Reg v) { return vec_activate<V, Activation::kGelu>(v); });
    case Activation::kGeluTanh: return body([](Reg v) { return vec_activate<V, Activation::kGeluTanh>(v); });
    case Activation::kSilu: return body([](Reg v) { return vec_activate<V, Activation::kSilu>(v); });
    case Activation::kTanh: return body([](Reg v) { return vec_activate<V, Activation::kTanh>(v); });
    case Activation::kQuickGelu: return body([](Reg v) { return vec_activate<V, Activation::kQuickGelu>(v); });
  }
}

}  // namespace transept
