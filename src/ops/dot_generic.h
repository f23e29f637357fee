// Products of int8 inputs with int8 weights in plain C++. dot_avx2.h, dot_avx512.h and dot_vnni.h have the same
// members. Static functions without state: thread-safe.
//
// Weights are read in vectors of kVecBytes, four inputs of a column and then the next column's (ops/packed_matrix.h).
// Inputs are read four at a time.
#pragma once

#include <stdint.h>
#include <string.h>

#include "ops/vec_generic.h"

namespace transept::generic {

struct Dot {
  static constexpr int kVecBytes = 32;
  static constexpr int kTileRows = 4;           // most rows of a tile; even
  static constexpr bool kStoresFours = false;   // has store_four (dot_vnni.h)
  static constexpr bool kRaisesInputs = false;  // sums count inputs with their row's zero added
  static constexpr int kSums = 4;               // vectors of sums that fit registers

  typedef int16_t Input;
  typedef int32_t Int __attribute__((vector_size(16)));
  struct Weights {
    const int8_t* bytes;
  };
  struct Inputs {
    int32_t q[4];
  };
  struct Sum {
    int32_t of[kVecBytes / 4];
  };

  // Stores V::kLanes rounded values, each four of them `step` places after the four before. zero: RowCode of
  // int8_kernel.h.
  static void store_inputs(Input* to, int64_t /*step*/, Vec::Reg rounded, int32_t /*zero*/) {
    for (int i = 0; i < Vec::kLanes; ++i) to[i] = static_cast<Input>(rounded[i]);
  }
  static void clear(Sum& sum) { memset(&sum, 0, sizeof sum); }
  static Weights load(const int8_t* p) { return {p}; }
  static Inputs broadcast(const Input* q) { return {{q[0], q[1], q[2], q[3]}}; }
  static void add(Sum& sum, const Inputs& q, const Weights& w) {
    for (int c = 0; c < kVecBytes / 4; ++c) {
      const int8_t* b = w.bytes + 4 * c;
      sum.of[c] += q.q[0] * b[0] + q.q[1] * b[1] + q.q[2] * b[2] + q.q[3] * b[3];
    }
  }
  static void store(int32_t* to, const Sum& sum) { memcpy(to, &sum, sizeof sum); }
  // Returns V::kLanes sums as floats, without the part that comes from unsigned inputs (none here).
  template <class V>
  static typename V::Reg corrected(const int32_t* sums, const int32_t* /*weight_sums*/, int32_t /*zero*/) {
    return V::load_int32(sums);
  }
  [[gnu::always_inline]] static void prefetch(const void* p) { Vec::prefetch(p); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) { Vec::prefetch_l2(p); }
};

// Products of int8 inputs with 4-bit codes as nibble_panels.h has them, eight inputs of a column in four bytes.
// dot_avx2.h, dot_avx512.h and dot_vnni.h have the same members.
struct NibbleDot {
  static constexpr int kVecBytes = 4 * Vec::kLanes;
  static constexpr int kTileRows = 4;
  static constexpr int kSums = 4;        // vectors of sums that fit registers
  static constexpr int kMostInputs = 0;  // that a Part can sum; divides every group; 0: any number

  // Of Vec::kLanes columns. Sum is a whole group's; Part is what some of its inputs add.
  struct Sum {
    int32_t of[Vec::kLanes];
  };
  typedef Sum Part;
  struct Codes {
    const uint8_t* bytes;
  };
  struct Inputs {
    const int8_t* q;
  };

  // The sum before any product: what the codes' offset, and zeros, times the sum of q take away. start: -8 times that.
  static void start(Sum& sum, int32_t start) {
    for (int32_t& one : sum.of) one = start;
  }
  static void start_with_zeros(Sum& sum, int32_t start, const int16_t* zeros) {
    for (int c = 0; c < Vec::kLanes; ++c) {
      sum.of[c] = static_cast<int32_t>(static_cast<uint32_t>(start) +
                                       static_cast<uint32_t>(zeros[c]) * static_cast<uint32_t>(start / 8));
    }
  }
  static void begin(Part& part, const Sum& sum) { part = sum; }
  static void end(Sum& sum, const Part& part) { sum = part; }
  static Codes load(const uint8_t* p) { return {p}; }
  // Eight of a row.
  static Inputs inputs(const int8_t* q) { return {q}; }
  // Adds their products.
  static void add(Part& part, const Codes& codes, const Inputs& inputs) {
    const int8_t* q = inputs.q;
    for (int c = 0; c < Vec::kLanes; ++c) {
      const uint8_t* b = codes.bytes + 4 * c;
      for (int i = 0; i < 4; ++i) part.of[c] += (b[i] & 15) * q[i] + (b[i] >> 4) * q[i + 4];
    }
  }
  template <class V>
  static typename V::Reg to_float(const Sum& sum) {
    return V::load_int32(sum.of);
  }
  [[gnu::always_inline]] static void prefetch(const void* p) { Vec::prefetch(p); }
  [[gnu::always_inline]] static void prefetch_l2(const void* p) { Vec::prefetch_l2(p); }
};

}  // namespace transept::generic
