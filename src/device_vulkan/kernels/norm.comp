#version 450
#extension GL_GOOGLE_include_directive : require
// The norm of rows (norm.glsl), a row a group. y may be x.
#define LANES 128
#include "dialect.glsl"

const uint kNormRows = 1;

ARGUMENTS(uint n; uint x_stride; uint y_stride; float epsilon;)
READS(0, float, x)
READS(1, float, gain)
#ifdef RMS
WRITES(2, float, normed)
#else
READS(2, float, shift)
WRITES(3, float, normed)
#endif

#define x_of x
#include "norm.glsl"

void main() { normalize_rows(gl_WorkGroupID.x, gl_NumWorkGroups.x, n, x_stride, y_stride, epsilon); }
