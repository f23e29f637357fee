// The KV kernels' additions to a level's Vec, in plain C++: loads and stores of 16-bit values, and dot products of
// bytes with 15-bit integers. kv_vec_avx2.h, kv_vec_avx512.h and kv_vec_avx512_vnni.h have the same functions. The rule
// of ops/kernels.h holds. Static functions without state: thread-safe.
//
// Integers: `quads` are kLanes times four neighbouring bytes. A dot product multiplies each four with one word (four
// integers of 15 bits, signed or unsigned) and adds the products to a lane of a sum. A level may split words, and so
// sums, into kParts. Sums are exact in 32 bits, so they are the same at every level.
#pragma once

#include "attention/kv_format.h"
#include "ops/vec_generic.h"

namespace transept::generic {

struct KvVec : Vec {
  using Vec::load;
  using Vec::load_n;
  using Vec::store;

  static Reg load(const BFloat16* p) {
    const Int wide = load_bits(p) << 16;
    return reinterpret_cast<Reg>(wide);
  }
  static Reg load(const Float16* p) {
    const Int bits = load_bits(p);
    const Int rest = bits & 0x7FFF, sign = (bits & 0x8000) << 16, shifted = rest << 13;
    // Scaling by 2^112 moves the exponent's bias from 15 to 127 and normalises subnormals.
    const Reg scaled = reinterpret_cast<Reg>(shifted) * set1(0x1p112f);
    const Int special = rest > 0x7BFF;
    const Int wide = (special & (shifted | 0x7F800000)) | (~special & reinterpret_cast<Int>(scaled)) | sign;
    return reinterpret_cast<Reg>(wide);
  }
  template <class E>
  static Reg load_n(const E* p, int n) {
    E values[kLanes] = {};
    for (int i = 0; i < n; ++i) values[i] = p[i];
    return load(values);
  }
  // Sets all bits of the lanes that are NaN.
  static Int nan_of(Reg a) { return (reinterpret_cast<Int>(a) & 0x7FFFFFFF) > 0x7F800000; }
  static void store(BFloat16* p, Reg a) {
    const Int bits = reinterpret_cast<Int>(a);
    const Int is_nan = nan_of(a);
    const Int rounded = bits + 0x7FFF + ((bits >> 16) & 1);
    const Int result = (is_nan & (bits | 0x400000)) | (~is_nan & rounded);
    for (int i = 0; i < kLanes; ++i) p[i].bits = static_cast<uint16_t>(static_cast<uint32_t>(result[i]) >> 16);
  }
  static void store(Float16* p, Reg a) {
    const Int sign = (reinterpret_cast<Int>(a) >> 16) & 0x8000;
    const Reg magnitude = min(set1(kMaxFloat16), abs(a));
    const Int bits = reinterpret_cast<Int>(magnitude);
    const Int normal = (bits - (112 << 23) + 0xFFF + ((bits >> 13) & 1)) >> 13;
    // Below 2^-14: adding 1/2 rounds, because the last bit of 1/2 is worth as much as that of the subnormals.
    const Reg moved = magnitude + set1(0.5f);
    const Int subnormal = reinterpret_cast<Int>(moved) - 0x3F000000;
    const Int is_small = magnitude < set1(0x1p-14f);
    const Int is_nan = nan_of(a);
    Int result = (is_small & subnormal) | (~is_small & normal);
    result = ((is_nan & 0x7E00) | (~is_nan & result)) | sign;
    for (int i = 0; i < kLanes; ++i) p[i].bits = static_cast<uint16_t>(result[i]);
  }
  // REQUIRES: integer-valued lanes in [-127, 127].
  static void store(int8_t* p, Reg a) {
    const Int integers = __builtin_convertvector(a, Int);
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<int8_t>(integers[i]);
  }

  typedef Int Quads;
  static constexpr int kParts = 1;
  struct Word {
    int16_t of[4];
  };

  static Quads load_quads(const void* p) {
    Quads q;
    memcpy(&q, p, sizeof q);
    return q;
  }
  static Quads load_quads_n(const void* p, int n) {
    Quads q = {};
    memcpy(&q, p, 4 * static_cast<size_t>(n));
    return q;
  }
  // Stores integer-valued lanes as integers [i, i + kLanes) of the `count` in `words`. Signed: |a| <= 32512; unsigned:
  // 0 to 32767.
  static void pack_signed(void* words, int64_t /*count*/, int64_t i, Reg a) {
    const Int integers = __builtin_convertvector(a, Int);
    auto* to = static_cast<int16_t*>(words) + i;
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = static_cast<int16_t>(integers[lane]);
  }
  static void pack_unsigned(void* words, int64_t count, int64_t i, Reg a) { pack_signed(words, count, i, a); }
  static Word word(const void* words, int64_t /*count*/, int64_t group, int /*part*/) {
    Word w;
    memcpy(&w, static_cast<const int16_t*>(words) + 4 * group, sizeof w);
    return w;
  }
  static Quads zero_quads() { return Quads{0, 0, 0, 0}; }
  // Adds the products of unsigned bytes with signed words.
  static Quads add_unsigned(Quads sum, Quads q, Word w) {
    return sum + (q & 255) * w.of[0] + ((q >> 8) & 255) * w.of[1] + ((q >> 16) & 255) * w.of[2] +
           ((q >> 24) & 255) * w.of[3];
  }
  // Adds the products of signed bytes with unsigned words.
  static Quads add_signed(Quads sum, Quads q, Word w) {
    return sum + ((q << 24) >> 24) * w.of[0] + ((q << 16) >> 24) * w.of[1] + ((q << 8) >> 24) * w.of[2] +
           (q >> 24) * w.of[3];
  }
  static Reg total(Quads sum, Quads /*none*/, int32_t offset) { return __builtin_convertvector(sum - offset, Reg); }

 private:
  static Int load_bits(const void* p) {
    typedef uint16_t Shorts __attribute__((vector_size(8)));
    Shorts bits;
    memcpy(&bits, p, sizeof bits);
    return __builtin_convertvector(bits, Int);
  }
};

}  // namespace transept::generic
