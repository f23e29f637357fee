#version 450
#extension GL_GOOGLE_include_directive : require
// y = x [rows, heads, head_dim] as int8 with a scale a row and head would keep it (attention/kv_format.h): what an encoder
// sees of keys and values that it rounds. A row and head a group. A head that is not finite becomes NaN.
#define LANES 32
#include "dialect.glsl"
#include "int8.glsl"

ARGUMENTS(uint head_dim; uint x_stride; uint y_stride;)
READS(0, float, x)
WRITES(1, float, y)

void main() {
  const uint row = gl_WorkGroupID.x, head = gl_WorkGroupID.y, from = row * x_stride + head * head_dim;
  uint most = 0;
  for (uint d = lane(); d < head_dim; d += LANES) most = larger(most, x(from + d));
  const float scale = scale_of(largest_of_lanes(most));
  for (uint d = lane(); d < head_dim; d += LANES) {
    set_y(row * y_stride + head * head_dim + d, is_nan(scale) ? scale : scale * float(code_of(x(from + d), scale)));
  }
}
