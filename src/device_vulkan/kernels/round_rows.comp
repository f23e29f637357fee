#version 450
#extension GL_GOOGLE_include_directive : require
// Rows of x as the integers that products of int8 weights take (round.glsl). A row a group.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint k; uint x_stride; uint inputs;)
READS(0, float, x)
WRITES(1, uint, q)
WRITES(2, uint, codes)

#define round_of x
#define set_rounded set_q
#define set_codes_of set_codes
#include "round.glsl"

void main() { round_row(gl_WorkGroupID.x, gl_WorkGroupID.x * x_stride, k, inputs); }
