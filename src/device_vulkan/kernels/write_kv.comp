#version 450
#extension GL_GOOGLE_include_directive : require
// Writes rows of k and v [rows, kv heads, head_dim] to slots of a layer's blocks, in the cpu backend's layout of float32
// (attention/kv_format.h): a part a head, K [head_dim, block_size] and V [block_size, head_dim]. A slot past the last is
// left out.
#define LANES 32
#include "dialect.glsl"

ARGUMENTS(uint head_dim; uint k_stride; uint k_head_stride; uint v_stride; uint v_head_stride; uint block_size;
          uint block_stride; uint num_slots;)
READS(0, float, k)
READS(1, float, v)
READS(2, uint, slots)
WRITES(3, float, cache)

void main() {
  const uint row = gl_WorkGroupID.x, head = gl_WorkGroupID.y, slot = slots(row);
  if (slot >= num_slots) return;
  const uint part = slot / block_size * block_stride + head * 2 * block_size * head_dim, place = slot % block_size;
  for (uint d = lane(); d < head_dim; d += LANES) {
    set_cache(part + d * block_size + place, k(row * k_stride + head * k_head_stride + d));
    set_cache(part + (block_size + place) * head_dim + d, v(row * v_stride + head * v_head_stride + d));
  }
}
