#version 450
#extension GL_GOOGLE_include_directive : require
// The range of bfloat16 numbers, two in a word, of the words of each group: found[group] the bits without sign of the
// largest, and how deep the lowest bit that is set in any lies: 384 less its exponent as a float32 has one (which may be
// below 0), or 0 where all are 0.
#define LANES 128
#include "dialect.glsl"

const uint kWordsOfGroup = 8192;

ARGUMENTS(uint words;)
READS(0, uint, w)
WRITES(1, uint, found)

void main() {
  const uint begin = gl_WorkGroupID.x * kWordsOfGroup, end = min(words, begin + kWordsOfGroup);
  uint most = 0, deepest = 0;
  for (uint i = begin + lane(); i < end; i += LANES) {
    const uint word = w(i);
    for (uint half_ = 0; half_ < 2; ++half_) {
      const uint bits = word >> (16 * half_) & 0x7FFFu;
      if (bits == 0) continue;
      const int exponent = max(int(bits >> 7), 1);
      const uint mantissa = (bits & 127u) | (bits >= 128 ? 128u : 0u);
      most = max(most, bits);
      deepest = max(deepest, uint(384 - (exponent - 7 + findLSB(mantissa))));
    }
  }
  most = largest_of_lanes(most);
  deepest = largest_of_lanes(deepest);
  if (lane() != 0) return;
  set_found(2 * gl_WorkGroupID.x, most);
  set_found(2 * gl_WorkGroupID.x + 1, deepest);
}
