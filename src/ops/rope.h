// Rotary positions (Su et al.: RoFormer, 2021): pairs of a head's columns are rotated by an angle that grows with the
// position. Pairs are neighbours (0 and 1, 2 and 3, ...), as in GPT-J and Moonshine; columns past the last pair do not
// change. Functions without state; they use the context's threads.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// Returns the angle of each pair at position 1: theta^(-2 i / dim), i < ceil(dim / 2). Rounds to float32 where the
// reference rounds (transformers, models/moonshine/modeling_moonshine.py, compute_default_rope_parameters).
std::vector<float> rope_frequencies(int64_t dim, double theta);

// Cosines and sines of each row's angles, for all layers of a step.
struct RopeAngles {
  TensorView cosines, sines;  // [rows, pairs] float32
};

// Returns the angles of `positions` [rows], in step memory: valid until the enclosing scope of the arena ends.
RopeAngles rope_angles(Context& context, std::span<const float> frequencies, View<int32_t> positions);

// Rotates x in place: [rows, heads, head_dim] float32. REQUIRES: 2 pairs <= head_dim.
void rope(Context& context, const RopeAngles& angles, const TensorView& x);

}  // namespace transept
