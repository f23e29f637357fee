#version 450
#extension GL_GOOGLE_include_directive : require
// y[i] = scale * table[rows[i]], or zeros for a row that is not in [0, num_rows); with ADDS that is added to y. FORMAT
// of the table as in product.comp; of 16-bit types two neighbours share a word, and table_stride counts elements.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint num_rows; uint table_stride; uint y_stride; float scale;)
READS(0, uint, table)
READS(1, uint, rows)
#ifdef ADDS
READS_WRITES(2, float, y)
#else
WRITES(2, float, y)
#endif

float element(uint index) {
#if FORMAT == 1
  const vec2 pair = unpackHalf2x16(table(index / 2));
  return index % 2 == 0 ? pair.x : pair.y;
#elif FORMAT == 2
  const uint pair = table(index / 2);
  return uintBitsToFloat(index % 2 == 0 ? pair << 16 : pair & 0xFFFF0000u);
#else
  return uintBitsToFloat(table(index));
#endif
}

void main() {
  const uint i = gl_WorkGroupID.x * LANES + lane(), row = gl_WorkGroupID.y;
  if (i >= n) return;
  const uint from = rows(row);
  const uint to = row * y_stride + i;
  const float found = from < num_rows ? element(from * table_stride + i) * scale : 0.0;
#ifdef ADDS
  set_y(to, y(to) + found);
#else
  set_y(to, found);
#endif
}
