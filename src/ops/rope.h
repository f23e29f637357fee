// Rotary positions (Su et al.: RoFormer, 2021): pairs of a head's columns are rotated by an angle that grows with the
// position. Columns past the last pair do not change. Functions without state; they use the context's threads.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/context.h"
#include "tensor/tensor.h"

namespace transept {

// Which columns make a pair.
enum class RopePairs : uint8_t {
  kNeighbours,  // 0 and 1, 2 and 3, ...: GPT-J, Moonshine
  kHalves,      // 0 and pairs, 1 and pairs + 1, ...: Llama, Qwen
};

// How queries and keys of a stack are rotated. A value.
struct Rope {
  std::vector<float> frequencies;  // [pairs] angle of each pair at position 1; empty: no rotation
  RopePairs pairs = RopePairs::kNeighbours;
  // The number of pairs of each position axis, in order of the pairs (Qwen2-VL's mrope_section: time, height, width).
  // Empty: one axis.
  std::vector<int32_t> sections = {};

  int64_t num_axes() const { return sections.empty() ? 1 : static_cast<int64_t>(sections.size()); }
};

// Returns the angle of each pair at position 1: theta^(-2 i / dim), i < ceil(dim / 2). Rounds to float32 where the
// reference rounds (transformers, models/moonshine/modeling_moonshine.py, compute_default_rope_parameters).
std::vector<float> rope_frequencies(int64_t dim, double theta);

// Cosines and sines of each row's angles, for all layers of a step.
struct RopeAngles {
  TensorView cosines, sines;  // [rows, pairs] float32
  RopePairs pairs = RopePairs::kNeighbours;
};

// Returns the angles of `positions` [num_axes, rows], in step memory: valid until the enclosing scope of the arena
// ends. REQUIRES: sections, if any, sum to the pairs.
RopeAngles rope_angles(Context& context, const Rope& rope, View<int32_t> positions);

// Rotates x in place: [rows, heads, head_dim] float32. REQUIRES: 2 pairs <= head_dim.
void apply_rope(Context& context, const RopeAngles& angles, const TensorView& x);

}  // namespace transept
