// Writes a row of keys and values to a slot of a layer's blocks, in the cpu backend's layout and with its rounding
// (attention/kv_format.h), by KV (kv.glsl). A kernel defines k_at(row, head, d) and v_at(row, head, d), has the arguments
// head_dim and block_size, and names the place of the operand `cache` kCachePlace.
//
// Rows may share words of 16 bits and of int8's V: each puts its own bits, so their order does not matter. Rounding to
// 16 bits is done with integers, whatever the device's own rounding is.
#include "int8.glsl"
#include "kv.glsl"

#if KV == 0
WRITES(kCachePlace, float, cache)
#else
READS_WRITES(kCachePlace, uint, cache)

// Sets the bits of the mask.
void put_bits(uint index, uint mask, uint bits) {
  atomicAnd(buffer_cache.v[base(kCachePlace) + index], ~mask);
  atomicOr(buffer_cache.v[base(kCachePlace) + index], bits);
}
#endif

#if KV == 1
// To the nearest, ties to even; beyond the largest finite value: that.
uint narrow(float x) {
  const uint all = floatBitsToUint(x), sign = all >> 16 & 0x8000u, magnitude = all & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;
  const uint bits = min(magnitude, 0x477FE000u);
  if (bits >= 0x38800000u) return sign | (bits - 0x38000000u + 0xFFFu + (bits >> 13 & 1u)) >> 13;
  const uint shift = 126 - (bits >> 23);  // below 2^-14: units of 2^-24
  if (shift > 24) return sign;
  const uint fraction = bits & 0x7FFFFFu | 0x800000u;
  return sign | (fraction + (1u << (shift - 1)) - 1u + (fraction >> shift & 1u)) >> shift;
}
#elif KV == 2
uint narrow(float x) {
  const uint bits = floatBitsToUint(x);
  return is_nan(x) ? (bits | 0x400000u) >> 16 : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}
#endif

#if KV == 1 || KV == 2
void put_element(uint part, uint element, float x) {
  const uint shift = element % 2 * 16;
  put_bits(part + element / 2, 0xFFFFu << shift, narrow(x) << shift);
}
#endif

#if KV == 3
uint byte_of(float x, float scale) { return uint(code_of(x, scale)) & 255u; }

void write_row(uint row, uint head, uint part, uint place) {
  uint most_k = 0, most_v = 0;
  for (uint d = lane(); d < head_dim; d += LANES) {
    most_k = larger(most_k, k_at(row, head, d));
    most_v = larger(most_v, v_at(row, head, d));
  }
  const float k_scale = scale_of(largest_of_lanes(most_k)), v_scale = scale_of(largest_of_lanes(most_v));
  for (uint g = lane(); g * 4 < head_dim; g += LANES) {
    uint four = 0;
    for (uint i = 0; i < 4 && g * 4 + i < head_dim; ++i) four |= byte_of(k_at(row, head, g * 4 + i), k_scale) << (8 * i);
    set_cache(part + k_word(block_size, g, place), four ^ 0x80808080u);
  }
  const uint shift = place % 4 * 8;
  for (uint d = lane(); d < head_dim; d += LANES) {
    put_bits(part + v_word(block_size, head_dim, place, d), 255u << shift, byte_of(v_at(row, head, d), v_scale) << shift);
  }
  if (lane() != 0) return;
  // NaN in one is NaN in both: a reader of the key shows it.
  const bool is_bad = is_nan(k_scale) || is_nan(v_scale);
  set_cache(part + place, is_bad ? 0x7FC00000u : floatBitsToUint(k_scale));
  set_cache(part + block_size + place, is_bad ? 0x7FC00000u : floatBitsToUint(v_scale));
}
#else
void write_row(uint row, uint head, uint part, uint place) {
  for (uint d = lane(); d < head_dim; d += LANES) {
    const float k_ = k_at(row, head, d), v_ = v_at(row, head, d);
    const uint k_place = k_element(block_size, d, place), v_place = v_element(block_size, head_dim, place, d);
#if KV == 0
    set_cache(part + k_place, k_);
    set_cache(part + v_place, v_);
#else
    put_element(part, k_place, k_);
    put_element(part, v_place, v_);
#endif
  }
}
#endif
