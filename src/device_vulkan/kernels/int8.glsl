// Numbers as int8 with one scale for several of them, rounded as the processor rounds keys and values
// (attention/kv_format.h).
#include "division.glsl"

// The larger magnitude's bits, which are in the order of the numbers: infinity and NaN are the largest.
uint larger(uint largest, float x) { return max(largest, floatBitsToUint(x) & 0x7FFFFFFFu); }
// The scale of numbers whose largest magnitude has these bits: NaN where one is not finite.
float scale_of(uint largest) {
  if (largest >= 0x7F800000u) return uintBitsToFloat(0x7FC00000u);
  const float scale = divided(uintBitsToFloat(largest), 127.0);
  return scale < 1.17549435e-38 ? 0.0 : scale;
}
int code_of(float x, float scale) {
  return scale > 0.0 ? int(clamp(roundEven(divided(x, scale)), -127.0, 127.0)) : 0;
}
