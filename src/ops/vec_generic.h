// Vectors of 4 floats in plain C++ (vector extensions of gcc and clang): SSE on x86-64, NEON on ARM. The baseline
// level. vec_avx2.h and vec_avx512.h have the same functions; vec_avx2.h lacks store_bfloat16, which no AVX2 kernel
// needs. A multiply-add rounds once there; here it rounds twice on x86-64. Static functions without state: thread-safe.
#pragma once

#include <stdint.h>
#include <string.h>

namespace transept::generic {

struct Vec {
  static constexpr int kLanes = 4;
  // The register tile of products: at most kTileRows rows x kTileVecs vectors of one panel. Up to kFewRows rows, a tile
  // holds all columns of a panel.
  static constexpr int kTileRows = 6;
  static constexpr int kTileVecs = 2;
  static constexpr int kFewRows = 1;

  typedef float Reg __attribute__((vector_size(16)));
  typedef int32_t Int __attribute__((vector_size(16)));

  static Reg zero() { return Reg{0, 0, 0, 0}; }
  static Reg set1(float x) { return Reg{x, x, x, x}; }
  static Reg load(const float* p) {
    Reg r;
    memcpy(&r, p, sizeof r);
    return r;
  }
  static void store(float* p, Reg a) { memcpy(p, &a, sizeof a); }
  // Loads widen 16-bit values: any value, with subnormals, infinities and NaN. bfloat16 lies in kLanes pairs: load the
  // first or the second of each pair.
  static Reg load_bfloat16_first(const uint16_t* p) {
    const Int bits = Int{p[0], p[2], p[4], p[6]} << 16;
    return reinterpret_cast<Reg>(bits);
  }
  static Reg load_bfloat16_second(const uint16_t* p) {
    const Int bits = Int{p[1], p[3], p[5], p[7]} << 16;
    return reinterpret_cast<Reg>(bits);
  }
  // Rounds to the nearest, ties to even; NaN stays NaN.
  static void store_bfloat16(uint16_t* p, Reg a) {
    typedef uint32_t Bits __attribute__((vector_size(16)));
    const Bits bits = reinterpret_cast<Bits>(a);
    const Bits nan = reinterpret_cast<Bits>((bits & 0x7FFFFFFF) > 0x7F800000);
    const Bits nearest = bits + 0x7FFF + ((bits >> 16) & 1);
    const Bits rounded = ((nearest & ~nan) | ((bits | 0x400000) & nan)) >> 16;
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<uint16_t>(rounded[i]);
  }
  static Reg load_float16(const uint16_t* p) {
    const Int bits{p[0], p[1], p[2], p[3]};
    const Int rest = bits & 0x7FFF;
    // 2^112 moves the exponent's bias from 15 to 127 and normalises subnormals.
    const Int shifted = rest << 13;
    const Reg finite = reinterpret_cast<Reg>(shifted) * 5.192296858534828e33f;
    const Int special = (0x7F800000 | ((rest & 0x3FF) << 13)) & (rest >= 0x7C00);
    const Int magnitude = (reinterpret_cast<Int>(finite) & (rest < 0x7C00)) | special | ((bits & 0x8000) << 16);
    return reinterpret_cast<Reg>(magnitude);
  }
  static Reg load_int32(const int32_t* p) {
    Int r;
    memcpy(&r, p, sizeof r);
    return __builtin_convertvector(r, Reg);
  }
  static Reg load_int16(const int16_t* p) {
    return Reg{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]), static_cast<float>(p[3])};
  }
  // Stores kLanes integers of [-128, 127].
  static void store_int8(int8_t* p, Reg a) {
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<int8_t>(a[i]);
  }
  // Eight 4-bit codes of each of kLanes columns, and what codes mean by a table of 16.
  typedef uint32_t Nibbles __attribute__((vector_size(16)));
  struct Table {
    const float* values;
  };
  static Table load_table(const float* values) { return {values}; }
  static Nibbles load_nibbles(const uint8_t* p) {
    Nibbles r;
    memcpy(&r, p, sizeof r);
    return r;
  }
  // The values of the codes that begin at bit kShift of each column.
  template <int kShift>
  static Reg look_up(const Table& table, Nibbles codes) {
    const Nibbles at = (codes >> kShift) & 15u;
    return Reg{table.values[at[0]], table.values[at[1]], table.values[at[2]], table.values[at[3]]};
  }
  // Loads or stores the first n lanes (0 <= n <= kLanes); loads zeros above. Does not touch memory past them.
  static Reg load_n(const float* p, int n) {
    float lanes[kLanes] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return load(lanes);
  }
  static void store_n(float* p, Reg a, int n) {
    float lanes[kLanes];
    store(lanes, a);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }

  static Reg add(Reg a, Reg b) { return a + b; }
  static Reg sub(Reg a, Reg b) { return a - b; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static Reg div(Reg a, Reg b) { return a / b; }
  static Reg fma(Reg a, Reg b, Reg c) { return a * b + c; }   // a b + c
  static Reg fnma(Reg a, Reg b, Reg c) { return c - a * b; }  // c - a b
  // Returns b if a or b is NaN, as SSE does.
  static Reg max(Reg a, Reg b) { return select(a > b, a, b); }
  static Reg min(Reg a, Reg b) { return select(a < b, a, b); }
  static Reg abs(Reg a) {
    const Int bits = reinterpret_cast<Int>(a) & 0x7FFFFFFF;
    return reinterpret_cast<Reg>(bits);
  }
  // a < b ? x : y, by lane; y if a or b is NaN.
  static Reg select_lt(Reg a, Reg b, Reg x, Reg y) { return select(a < b, x, y); }
  // Sets lanes from n on to fill (any n).
  static Reg keep_first(Reg a, int64_t n, float fill) {
    const int32_t count = n < 0 ? 0 : n > kLanes ? kLanes : static_cast<int32_t>(n);
    return select(Int{0, 1, 2, 3} < Int{count, count, count, count}, a, set1(fill));
  }
  // Bit i of a mask: the comparison of lanes i holds; false for NaN.
  static uint32_t equal_mask(Reg a, Reg b) {
    const Int e = a == b;
    uint32_t mask = 0;
    for (int i = 0; i < kLanes; ++i) mask |= static_cast<uint32_t>(e[i] & 1) << i;
    return mask;
  }
  static uint32_t greater_mask(Reg a, Reg b) {
    const Int e = a > b;
    uint32_t mask = 0;
    for (int i = 0; i < kLanes; ++i) mask |= static_cast<uint32_t>(e[i] & 1) << i;
    return mask;
  }
  // Rounds to the nearest integer, ties to even. REQUIRES: |a| < 2^22.
  static Reg round(Reg a) {
    const Reg magic = set1(12582912.0f);  // 1.5 * 2^23: leaves no bits for a fraction
    return (a + magic) - magic;
  }
  // Returns a * 2^n for integer-valued n in [-126, 127].
  static Reg scale(Reg a, Reg n) {
    const Int bits = (__builtin_convertvector(n, Int) + 127) << 23;
    return a * reinterpret_cast<Reg>(bits);
  }
  static float reduce_add(Reg a) { return (a[0] + a[2]) + (a[1] + a[3]); }
  static float reduce_max(Reg a) {
    const float b = a[0] > a[1] ? a[0] : a[1];
    const float c = a[2] > a[3] ? a[2] : a[3];
    return b > c ? b : c;
  }
  // Always inline: GCC 12 treats a function that only prefetches as one without effect, and drops calls of it.
  [[gnu::always_inline]] static void prefetch(const void* p) { __builtin_prefetch(p); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) { __builtin_prefetch(p, 0, 2); }

 private:
  static Reg select(Int mask, Reg x, Reg y) {
    const Int bits = (mask & reinterpret_cast<Int>(x)) | (~mask & reinterpret_cast<Int>(y));
    return reinterpret_cast<Reg>(bits);
  }
};

}  // namespace transept::generic
