#version 450
#extension GL_GOOGLE_include_directive : require
// Of each row of logits: the index of the largest entry (the lowest on ties; NaN is never the largest; 0xFFFFFFFF: there
// is none), that entry, and log(sum(exp)): three words. Entries of -inf add nothing; NaN makes the sum NaN.
#define LANES 128
#include "dialect.glsl"

ARGUMENTS(uint n; uint x_stride;)
READS(0, float, x)
WRITES(1, uint, choice)

shared uint places[LANES];

void main() {
  const uint row = gl_WorkGroupID.x, from = row * x_stride;
  float best = kLowest;
  uint place = 0xFFFFFFFFu;
  bool has_nan = false;
  for (uint i = lane(); i < n; i += LANES) {
    const float value = x(from + i);
    if (is_nan(value)) {
      has_nan = true;
    } else if (value > best || place == 0xFFFFFFFFu) {
      best = value;
      place = i;
    }
  }
  for (uint distance = 1; distance < LANES; distance *= 2) {
    exchange_[lane()] = best;
    places[lane()] = place;
    barrier();
    const float other = exchange_[lane() ^ distance];
    const uint other_place = places[lane() ^ distance];
    barrier();
    if (other_place != 0xFFFFFFFFu && (place == 0xFFFFFFFFu || other > best || (other == best && other_place < place))) {
      best = other;
      place = other_place;
    }
  }
  float sum = 0;
  for (uint i = lane(); i < n; i += LANES) {
    const float value = x(from + i);
    if (!is_nan(value) && !is_lowest(value)) sum += exp_(value - best);
  }
  sum = sum_of_lanes(sum);
  const bool any_nan = sum_of_lanes(has_nan ? 1.0 : 0.0) != 0;
  if (lane() == 0) {
    set_choice(row * 3, place);
    set_choice(row * 3 + 1, floatBitsToUint(best));
    const float result = is_lowest(best) ? kLowest : best + log(sum);
    set_choice(row * 3 + 2, any_nan ? 0x7FC00000u : floatBitsToUint(result));
  }
}
