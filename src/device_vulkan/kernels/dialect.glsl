// What all kernels share. A kernel defines LANES (a power of two, at most 128), includes this, then names its ARGUMENTS
// and its operands in the order of its KernelSpec (kernels.cc): the qualifiers below are what it declares there, and
// kernels_test.cc compares the two.
//
//   READS(0, float, x)         float x(uint index)
//   WRITES(1, float, y)        void set_y(uint index, float value)
//   READS_WRITES(2, float, z)  both
//   READS_WRITES_COHERENT      both, and groups of the op see each other's (tail.glsl)
//
// Indices count words from the beginning of the operand's range. base(place) is where that lies in what is bound, which
// begins at the device's alignment: fewer than 64 words, a byte an operand.
//
// Sums are over LANES lanes whatever the device's subgroups are: butterflies in shared memory, so the order, and with it
// the bits, are the kernel's own. Built with REVERSED, lane l stands where LANES - 1 - l would: a barrier that is
// missing shows in one of the two builds. No float is added atomically.
layout(local_size_x = LANES, local_size_y = 1, local_size_z = 1) in;

#define ARGUMENTS(members)                                                           \
  layout(push_constant, std430) uniform Arguments { uint bases_[4]; members };       \
  uint base(uint place) { return bitfieldExtract(bases_[place / 4], int(place % 4 * 8), 8); }

#define READS(place, type, name)                                                                    \
  layout(set = 0, binding = place, std430) readonly buffer Buffer_##name { type v[]; } buffer_##name; \
  type name(uint index) { return buffer_##name.v[base(place) + index]; }
#define WRITES(place, type, name)                                                                    \
  layout(set = 0, binding = place, std430) writeonly buffer Buffer_##name { type v[]; } buffer_##name; \
  void set_##name(uint index, type value) { buffer_##name.v[base(place) + index] = value; }
#define READS_WRITES(place, type, name)                                                    \
  layout(set = 0, binding = place, std430) buffer Buffer_##name { type v[]; } buffer_##name; \
  type name(uint index) { return buffer_##name.v[base(place) + index]; }                    \
  void set_##name(uint index, type value) { buffer_##name.v[base(place) + index] = value; }
#define READS_WRITES_COHERENT(place, type, name)                                                    \
  layout(set = 0, binding = place, std430) coherent buffer Buffer_##name { type v[]; } buffer_##name; \
  type name(uint index) { return buffer_##name.v[base(place) + index]; }                             \
  void set_##name(uint index, type value) { buffer_##name.v[base(place) + index] = value; }

#ifdef REVERSED
uint lane() { return LANES - 1 - gl_LocalInvocationIndex; }
#else
uint lane() { return gl_LocalInvocationIndex; }
#endif

#define kLowest uintBitsToFloat(0xFF800000u)  // -inf

// By their bits: a device need not keep what compares as NaN.
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u; }
bool is_lowest(float x) { return floatBitsToUint(x) == 0xFF800000u; }

shared float exchange_[LANES];

float sum_of_lanes(float x) {
  for (uint distance = 1; distance < LANES; distance *= 2) {
    exchange_[lane()] = x;
    barrier();
    x += exchange_[lane() ^ distance];
    barrier();
  }
  return x;
}
float max_of_lanes(float x) {
  for (uint distance = 1; distance < LANES; distance *= 2) {
    exchange_[lane()] = x;
    barrier();
    x = max(x, exchange_[lane() ^ distance]);
    barrier();
  }
  return x;
}

// Of numbers that are bits or counts.
shared uint exchange_of_uints_[LANES];
uint largest_of_lanes(uint x) {
  for (uint distance = 1; distance < LANES; distance *= 2) {
    exchange_of_uints_[lane()] = x;
    barrier();
    x = max(x, exchange_of_uints_[lane() ^ distance]);
    barrier();
  }
  return x;
}

// The functions of ops/vec_math.h, term by term.
float exp_(float x) {
  const float clamped = min(88.0, max(-87.3, x));
  const float n = round(clamped * 1.44269504);
  float r = fma(-n, 0.693359375, clamped);
  r = fma(-n, -2.12194440e-4, r);
  float q = 0.0013814599;
  q = fma(q, r, 0.008368717);
  q = fma(q, r, 0.04166839);
  q = fma(q, r, 0.16666521);
  q = fma(q, r, 0.49999994);
  const float y = fma(r * r, q, r) + 1.0;
  if (is_nan(x)) return x;
  return x < -87.3 ? 0.0 : y * uintBitsToFloat(uint(int(n) + 127) << 23);
}
float gelu(float x) {
  const float a = abs(x), t = 1.0 / fma(a, 0.23, 1.0);
  float p = -0.07846608;
  p = fma(p, t, 0.29040748);
  p = fma(p, t, -0.27811322);
  p = fma(p, t, 0.30145687);
  p = fma(p, t, -0.03290896);
  p = fma(p, t, 0.119509116);
  p = fma(p, t, 0.08576424);
  p = fma(p, t, 0.09237826);
  p = fma(p, t, -2.7750271e-05);
  return fma(-a, exp_(a * a * -0.5) * p, max(0.0, x));
}
float times_sigmoid(float x, float z) { return x / (1.0 + exp_(-z)); }
float tanh_(float x) {
  const float a = abs(x), z = x * x;
  float p = -0.00570498547;
  p = fma(p, z, 0.0206390861);
  p = fma(p, z, -0.0537397154);
  p = fma(p, z, 0.133314416);
  p = fma(p, z, -0.333332807);
  const float far = 1.0 - 2.0 / (1.0 + exp_(a + a));
  return a < 0.625 ? fma(x * z, p, x) : (x < 0.0 ? -far : far);
}
// In the order of Activation (ops/activation_kind.h).
float activate(uint activation, float x) {
  switch (activation) {
    case 1: return max(0.0, x);
    case 2: return gelu(x);
    case 3: return times_sigmoid(x, fma(x * x * x, 0.044715, x) * 1.59576912);
    case 4: return times_sigmoid(x, x);
    case 5: return tanh_(x);
    case 6: return times_sigmoid(x, x * 1.702);
  }
  return x;
}
