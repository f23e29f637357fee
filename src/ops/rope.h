// Rotary positions (Su et al.: RoFormer, 2021): pairs of a head's columns are turned by an angle that grows with the
// position. Pairs are neighbours (0 and 1, 2 and 3, ...), as GPT-J and Moonshine have them; columns behind the last
// pair stay as they are.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// Angle of each pair at position 1: theta^(-2 i / dim), i < ceil(dim / 2), rounded to float32 where the reference
// rounds (transformers, models/moonshine/modeling_moonshine.py, compute_default_rope_parameters).
std::vector<float> rope_frequencies(int64_t dim, double theta);

// Of each row's position, for all layers of a step.
struct RopeAngles {
  TensorView cosines, sines;  // [rows, pairs] float32
};

// In step memory: valid until the enclosing scope of the arena ends.
RopeAngles rope_angles(Context& context, std::span<const float> frequencies, View<int32_t> positions);

// Turns x: [rows, heads, head_dim] float32 in place. REQUIRES: 2 pairs <= head_dim.
void rope(Context& context, const RopeAngles& angles, const TensorView& x);

}  // namespace transept
