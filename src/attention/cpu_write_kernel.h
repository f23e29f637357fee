// Writes new K and V into blocks, and makes the table of a level's kernels (ops/kernels.h has the rule for such files).
#pragma once

#include <string.h>

#include "attention/cpu_int8_kernel.h"
#include "attention/cpu_kernel.h"

namespace transept {

// Returns a row's values as E, in `room`; float32 values in place.
template <class V>
inline const float* narrow(const float* from, int64_t /*n*/, float* /*room*/) {
  return from;
}
template <class V, class E>
inline const E* narrow(const float* from, int64_t n, E* room) {
  for (int64_t i = 0; i < n; i += V::kLanes) {
    const int64_t left = n - i;
    V::store(room + i, left < V::kLanes ? V::load_n(from + i, static_cast<int>(left)) : V::load(from + i));
  }
  return room;
}

template <class V, class E>
inline void write_floats(const KvWrite& write) {
  const int64_t dim = write.head_dim, size = write.block_size;
  E* const k = reinterpret_cast<E*>(write.part) + write.offset;
  E* const v = reinterpret_cast<E*>(write.part) + (size + write.offset) * dim;
  E room[kMaxHeadDim];
  // K is transposed: neighbouring rows are written together, while their lines are in the cache.
  for (int64_t j = 0; j < write.num_rows; ++j) {
    const E* from = narrow<V>(write.k + j * write.k_stride, dim, room);
    for (int64_t d = 0; d < dim; ++d) k[d * size + j] = from[d];
    from = narrow<V>(write.v + j * write.v_stride, dim, room);
    memcpy(v + j * dim, from, static_cast<size_t>(dim) * sizeof(E));
  }
}

// Writes the integers of n floats, with zeros up to a multiple of V::kLanes; returns the scale (kv_format.h).
template <class V>
inline float quantize_row(const float* x, int64_t n, int8_t* integers) {
  const float scale = largest_magnitude<V>(x, n) / kMaxInt8;
  const bool is_zero = scale < kLeastScale;
  const typename V::Reg divisor = V::set1(scale), most = V::set1(kMaxInt8), least = V::set1(-kMaxInt8);
  for (int64_t i = 0; i < n; i += V::kLanes) {
    typename V::Reg a = V::zero();
    if (const int64_t left = n - i; !is_zero) {
      const int lanes = static_cast<int>(left < V::kLanes ? left : V::kLanes);
      a = V::min(most, V::max(least, V::round(V::div(V::load_n(x + i, lanes), divisor))));
    }
    V::store(integers + i, a);
  }
  return is_zero ? 0.0f : scale;
}

// Writes row j's scales and K's integers to its slot, and V's integers to `values`.
template <class V>
inline void write_int8_row(const KvWrite& write, const Int8Part& part, int64_t j, int8_t* values) {
  const int64_t dim = write.head_dim, size = write.block_size, slot = write.offset + j;
  auto* scales = reinterpret_cast<float*>(write.part);
  int8_t integers[kMaxHeadDim];
  float k_scale = quantize_row<V>(write.k + j * write.k_stride, dim, integers);
  for (int64_t d = 0; d < dim; d += 4) {
    uint32_t four;
    memcpy(&four, integers + d, sizeof four);
    four ^= 0x80808080u;
    memcpy(write.part + part.k + (d * size + slot * 4), &four, sizeof four);
  }
  float v_scale = quantize_row<V>(write.v + j * write.v_stride, dim, values);
  k_scale += v_scale * 0;  // NaN in one is NaN in both: a reader of the key shows it
  v_scale += k_scale * 0;
  scales[slot] = k_scale;
  scales[size + slot] = v_scale;
}

// Writes n bytes, each into its place in a word of its own: as whole words, which vectorises.
static inline void put_bytes(const int8_t* bytes, int64_t n, int place, unsigned char* words) {
  const uint32_t others = ~(uint32_t{255} << (8 * place));
  for (int64_t i = 0; i < n; ++i) {
    uint32_t word;
    memcpy(&word, words + i * 4, sizeof word);
    word = (word & others) | uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * place);
    memcpy(words + i * 4, &word, sizeof word);
  }
}

template <class V>
inline void write_int8(const KvWrite& write) {
  const int64_t dim = write.head_dim;
  const Int8Part part = int8_part(write.block_size, dim);
  int8_t values[4][kMaxHeadDim];
  for (int64_t j = 0; j < write.num_rows;) {
    const int64_t slot = write.offset + j;
    unsigned char* v = write.part + part.v + slot / 4 * dim * 4;
    if (slot % 4 == 0 && j + 4 <= write.num_rows) {  // a whole four of keys, side by side
      for (int64_t i = 0; i < 4; ++i) write_int8_row<V>(write, part, j + i, values[i]);
      for (int64_t d = 0; d < dim; ++d) {
        uint32_t four = 0;
        for (int i = 0; i < 4; ++i) four |= uint32_t{static_cast<unsigned char>(values[i][d])} << (8 * i);
        memcpy(v + d * 4, &four, sizeof four);
      }
      j += 4;
    } else {
      write_int8_row<V>(write, part, j, values[0]);
      put_bytes(values[0], dim, static_cast<int>(slot % 4), v);
      ++j;
    }
  }
}

template <class V>
constexpr KvKernels kv_kernels() {
  KvKernels kernels{};
  kernels.attend[static_cast<int>(KvType::kFloat32)] = attend_rows<V, KeyTile<V, float>>;
  kernels.attend[static_cast<int>(KvType::kFloat16)] = attend_rows<V, KeyTile<V, Float16>>;
  kernels.attend[static_cast<int>(KvType::kBFloat16)] = attend_rows<V, KeyTile<V, BFloat16>>;
  kernels.attend[static_cast<int>(KvType::kInt8)] = attend_rows<V, Int8Tile<V>>;
  kernels.write[static_cast<int>(KvType::kFloat32)] = write_floats<V, float>;
  kernels.write[static_cast<int>(KvType::kFloat16)] = write_floats<V, Float16>;
  kernels.write[static_cast<int>(KvType::kBFloat16)] = write_floats<V, BFloat16>;
  kernels.write[static_cast<int>(KvType::kInt8)] = write_int8<V>;
  return kernels;
}

}  // namespace transept
