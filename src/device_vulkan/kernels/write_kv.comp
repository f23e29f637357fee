#version 450
#extension GL_GOOGLE_include_directive : require
// Writes rows of k and v [rows, kv heads, head_dim] to slots of a layer's blocks (write_kv.glsl). A row and head a group. A
// slot past the last is left out.
#define LANES 32
#include "dialect.glsl"

ARGUMENTS(uint head_dim; uint k_stride; uint k_head_stride; uint v_stride; uint v_head_stride; uint block_size;
          uint block_stride; uint num_slots;)
READS(0, float, k)
READS(1, float, v)
READS(2, uint, slots)

#define kCachePlace 3
float k_at(uint row, uint head, uint d) { return k(row * k_stride + head * k_head_stride + d); }
float v_at(uint row, uint head, uint d) { return v(row * v_stride + head * v_head_stride + d); }
#include "write_kv.glsl"

void main() {
  const uint row = gl_WorkGroupID.x, head = gl_WorkGroupID.y, slot = slots(row);
  if (slot >= num_slots) return;
  const uint part = slot / block_size * block_stride + head * part_words(block_size, head_dim);
  write_row(row, head, part, slot % block_size);
}
