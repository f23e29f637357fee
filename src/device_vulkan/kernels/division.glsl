// Division to the nearest float32, ties to even, with integers: a device's own may be off by 2.5 units in the last place,
// and its fma need not be fused, so that no remainder of floats is exact. REQUIRES: finite numbers; b is normal. What
// would be below the smallest normal number is 0.
#ifndef DIVISION
#define DIVISION
float divided(float a, float b) {
  const uint bits = floatBitsToUint(a), of_b = floatBitsToUint(b), sign = (bits ^ of_b) & 0x80000000u;
  const int a_exponent = int(bits >> 23 & 255u), b_exponent = int(of_b >> 23 & 255u);
  if (a_exponent == 0) return uintBitsToFloat(sign);
  uint rest = bits & 0x7FFFFFu | 0x800000u;
  const uint divisor = of_b & 0x7FFFFFu | 0x800000u;
  int exponent = a_exponent - b_exponent + 127;
  if (rest < divisor) {
    rest <<= 1;
    --exponent;
  }
  uint quotient = 0;
  for (int i = 0; i < 24; ++i) {
    const bool fits = rest >= divisor;
    quotient = quotient << 1 | (fits ? 1u : 0u);
    rest = (fits ? rest - divisor : rest) << 1;
  }
  quotient += rest > divisor || rest == divisor && (quotient & 1u) != 0 ? 1 : 0;
  if (exponent <= 0) return uintBitsToFloat(sign);
  return uintBitsToFloat(sign | (uint(exponent) << 23) + (quotient - 0x800000u));
}
#endif
