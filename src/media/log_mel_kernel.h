// Computes log-mel frames, one per lane: a vector holds the same sample (or frequency) of kLanes frames, so every step
// reads as scalar code. A level defines `Vec` and `Ints`, vectors of kLanes floats and integers (the compiler's vector
// types). Obeys the rule in log_mel_kernels.h. Pure functions: thread-safe with a scratch per thread.
#pragma once

#include <stdint.h>

#include "media/log_mel_kernels.h"

namespace transept {

template <typename Level>
struct LogMelKernel {
  using Vec = typename Level::Vec;
  using Ints = typename Level::Ints;
  static constexpr int kLanes = Level::kLanes;
  static_assert(kLanes <= kLogMelMaxLanes);

  struct Complex {
    Vec re, im;
  };
  static Complex add(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
  static Complex sub(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
  static Complex scaled(const Complex& a, float s) { return {a.re * s, a.im * s}; }
  static Complex times(const Complex& a, const float* w) {
    return {a.re * w[0] - a.im * w[1], a.re * w[1] + a.im * w[0]};
  }
  static Complex minus_i(const Complex& a, const Complex& b) { return {a.re + b.im, a.im - b.re}; }  // a - ib
  static Complex plus_i(const Complex& a, const Complex& b) { return {a.re - b.im, a.im + b.re}; }   // a + ib

  // Fourier transform of length kRadix, in place.
  template <int kRadix>
  static void butterfly(Complex* a) {
    if constexpr (kRadix == 2) {
      const Complex sum = add(a[0], a[1]);
      a[1] = sub(a[0], a[1]);
      a[0] = sum;
    } else if constexpr (kRadix == 3) {
      const Complex sum = add(a[1], a[2]);
      const Complex turn = scaled(sub(a[1], a[2]), 0.866025403784438647f);
      const Complex middle = sub(a[0], scaled(sum, 0.5f));
      a[0] = add(a[0], sum);
      a[1] = minus_i(middle, turn);
      a[2] = plus_i(middle, turn);
    } else if constexpr (kRadix == 4) {
      const Complex s02 = add(a[0], a[2]), d02 = sub(a[0], a[2]), s13 = add(a[1], a[3]), d13 = sub(a[1], a[3]);
      a[0] = add(s02, s13);
      a[1] = minus_i(d02, d13);
      a[2] = sub(s02, s13);
      a[3] = plus_i(d02, d13);
    } else {
      static_assert(kRadix == 5);
      constexpr float kCos1 = 0.309016994374947424f, kSin1 = 0.951056516295153572f;
      constexpr float kCos2 = -0.809016994374947424f, kSin2 = 0.587785252292473129f;
      const Complex s14 = add(a[1], a[4]), s23 = add(a[2], a[3]), d14 = sub(a[1], a[4]), d23 = sub(a[2], a[3]);
      const Complex middle1 = add(a[0], add(scaled(s14, kCos1), scaled(s23, kCos2)));
      const Complex middle2 = add(a[0], add(scaled(s14, kCos2), scaled(s23, kCos1)));
      const Complex turn1 = add(scaled(d14, kSin1), scaled(d23, kSin2));
      const Complex turn2 = sub(scaled(d14, kSin2), scaled(d23, kSin1));
      a[0] = add(a[0], add(s14, s23));
      a[1] = minus_i(middle1, turn1);
      a[2] = minus_i(middle2, turn2);
      a[3] = plus_i(middle2, turn2);
      a[4] = plus_i(middle1, turn1);
    }
  }

  // x[stride * (p + groups * k) + q] to y[stride * (radix * p + k) + q], for all p, q, over k.
  template <int kRadix>
  static void stage(const FourierStage& stage, int32_t stride, const Complex* x, Complex* y) {
    for (int32_t p = 0; p < stage.groups; ++p) {
      const float* twiddles = stage.twiddles + int64_t{p} * (kRadix - 1) * 2;
      for (int32_t q = 0; q < stride; ++q) {
        Complex a[kRadix];
        for (int k = 0; k < kRadix; ++k) a[k] = x[stride * (p + stage.groups * k) + q];
        butterfly<kRadix>(a);
        y[stride * kRadix * p + q] = a[0];
        for (int k = 1; k < kRadix; ++k)
          y[stride * (kRadix * p + k) + q] = times(a[k], twiddles + int64_t{2} * (k - 1));
      }
    }
  }

  // The same for any radix, by the definition of the transform.
  static void any_stage(const FourierStage& stage, int32_t stride, const Complex* x, Complex* y) {
    for (int32_t p = 0; p < stage.groups; ++p) {
      const float* twiddles = stage.twiddles + int64_t{p} * (stage.radix - 1) * 2;
      for (int32_t q = 0; q < stride; ++q) {
        for (int32_t k = 0; k < stage.radix; ++k) {
          Complex sum = x[stride * p + q];
          for (int32_t j = 1; j < stage.radix; ++j) {
            const float* root = stage.roots + int64_t{2} * (int64_t{j} * k % stage.radix);
            sum = add(sum, times(x[stride * (p + stage.groups * j) + q], root));
          }
          y[stride * (stage.radix * p + k) + q] = k == 0 ? sum : times(sum, twiddles + int64_t{2} * (k - 1));
        }
      }
    }
  }

  // Transforms x, with y as scratch. Returns the buffer that holds the result, x or y.
  static Complex* transform(const LogMelPlan& plan, Complex* x, Complex* y) {
    int32_t stride = 1;
    for (int32_t i = 0; i < plan.num_stages; ++i) {
      const FourierStage& s = plan.stages[i];
      switch (s.radix) {
        case 2: stage<2>(s, stride, x, y); break;
        case 3: stage<3>(s, stride, x, y); break;
        case 4: stage<4>(s, stride, x, y); break;
        case 5: stage<5>(s, stride, x, y); break;
        default: any_stage(s, stride, x, y);
      }
      stride *= s.radix;
      Complex* const swap = x;
      x = y;
      y = swap;
    }
    return x;
  }

  // Windows the samples of kLanes frames into x. Lanes past num_frames repeat the last frame.
  static void load(const LogMelPlan& plan, const float* samples, int64_t num_frames, Complex* x) {
    float* const target = reinterpret_cast<float*>(x);
    for (int lane = 0; lane < kLanes; ++lane) {
      const float* frame = samples + (lane < num_frames ? lane : num_frames - 1) * plan.hop_length;
      for (int32_t i = 0; i < plan.n_fft; ++i) target[int64_t{i} * kLanes + lane] = frame[i] * plan.window[i];
    }
  }

  // Computes |X[k]|^2 for k up to n_fft / 2, of the real transform X, from the complex transform z of sample pairs:
  // X[k] = E + w O, X[half - k] = conj(E - w O), with E and O the transforms of even and odd samples.
  static void power(const LogMelPlan& plan, const Complex* z, Vec* out) {
    const int32_t half = plan.n_fft / 2;
    for (int32_t k = 0; k <= half - k; ++k) {
      const Complex a = z[k], b = z[k == 0 ? 0 : half - k];
      const Complex even = {(a.re + b.re) * 0.5f, (a.im - b.im) * 0.5f};
      const Complex odd = {(a.im + b.im) * 0.5f, (b.re - a.re) * 0.5f};
      const Complex turned = times(odd, plan.split + int64_t{2} * k);
      const Complex low = add(even, turned), high = sub(even, turned);
      out[k] = low.re * low.re + low.im * low.im;
      out[half - k] = high.re * high.re + high.im * high.im;
    }
  }

  // log10 of normal positive numbers, within 2e-7 (relative to 1). Writes x = 2^e m with m in [sqrt(1/2), sqrt(2)), and
  // ln m = 2 artanh((m - 1) / (m + 1)) as a series.
  static Vec log10(Vec x) {
    constexpr int32_t kSqrtHalf = 0x3f3504f3;  // its bits
    const Ints bits = (Ints)x;
    const Ints exponent = (bits - kSqrtHalf) >> 23;
    const Vec m = (Vec)(bits - (exponent << 23));
    const Vec s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
    const Vec series = 1.0f + s2 * (1.0f / 3 + s2 * (1.0f / 5 + s2 * (1.0f / 7 + s2 * (1.0f / 9))));
    return __builtin_convertvector(exponent, Vec) * 0.301029995663981195f + s * series * 0.868588963806503655f;
  }

  // Writes out [num_frames, num_mel_bins]: log10 of the filtered power, at least 1e-10.
  static void mel(const LogMelPlan& plan, const Vec* power, int64_t num_frames, float* out) {
    const float* weights = plan.weights;
    for (int32_t bin = 0; bin < plan.num_mel_bins; ++bin) {
      Vec sum = {};
      const Vec* from = power + plan.first[bin];
      for (int32_t i = 0; i < plan.count[bin]; ++i) sum += from[i] * weights[i];
      weights += plan.count[bin];
      const Vec least = Vec{} + 1e-10f;
      const Vec value = log10(sum > least ? sum : least);
      for (int64_t lane = 0; lane < num_frames; ++lane) out[lane * plan.num_mel_bins + bin] = value[lane];
    }
  }

  // A LogMelFunction.
  static void frames(const LogMelPlan& plan, const float* samples, int64_t num_frames, float* scratch, float* out) {
    Complex* const x = reinterpret_cast<Complex*>(scratch);
    Complex* const y = x + plan.n_fft / 2;
    Vec* const powers = reinterpret_cast<Vec*>(y + plan.n_fft / 2);
    for (int64_t i = 0; i < num_frames; i += kLanes) {
      const int64_t count = num_frames - i < kLanes ? num_frames - i : kLanes;
      load(plan, samples + i * plan.hop_length, count, x);
      power(plan, transform(plan, x, y), powers);
      mel(plan, powers, count, out + i * plan.num_mel_bins);
    }
  }
};

}  // namespace transept
