#include "ops/rope.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/cpu_ops.h"

namespace transept {
namespace {

// Below this many elements a task is not worth waking a thread for.
constexpr int64_t kRopeTaskElements = 8192;

void turn_neighbours(const float* cosines, const float* sines, int64_t pairs, float* columns) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const float a = columns[2 * pair], b = columns[2 * pair + 1];
    columns[2 * pair] = a * cosines[pair] - b * sines[pair];
    columns[2 * pair + 1] = b * cosines[pair] + a * sines[pair];
  }
}

void turn_halves(const float* cosines, const float* sines, int64_t pairs, float* columns) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const float a = columns[pair], b = columns[pairs + pair];
    columns[pair] = a * cosines[pair] - b * sines[pair];
    columns[pairs + pair] = b * cosines[pair] + a * sines[pair];
  }
}

}  // namespace

std::vector<float> rope_frequencies(int64_t dim, double theta) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(dim);
    frequencies.push_back(1.0f / static_cast<float>(std::pow(theta, static_cast<double>(exponent))));
  }
  return frequencies;
}

RopeAngles rope_angles(Context& context, const Rope& rope, View<int32_t> positions) {
  const int64_t pairs = static_cast<int64_t>(rope.frequencies.size()), axes = rope.num_axes();
  const int64_t rows = static_cast<int64_t>(positions.size()) / axes;
  CHECK(rows * axes == static_cast<int64_t>(positions.size()));
  CHECK(rope.sections.empty() || std::accumulate(rope.sections.begin(), rope.sections.end(), int64_t{0}) == pairs);
  const RopeAngles angles{context.arena.tensor(DType::kFloat32, {rows, pairs}),
                          context.arena.tensor(DType::kFloat32, {rows, pairs}), rope.pairs};
  context.device.ops().fill_rope_angles(context, rope, positions, angles);
  return angles;
}

void cpu_ops::fill_rope_angles(Context& context, const Rope& rope, View<int32_t> positions, const RopeAngles& angles) {
  if (context.dry_run) return;
  const int64_t rows = angles.cosines.dim(0), pairs = angles.cosines.dim(1), axes = rope.num_axes();
  constexpr int64_t kTaskRows = 64;
  cpu_of(context).threads().parallel_for(ceil_div(rows, kTaskRows), [&](int64_t task, int) {
    for (int64_t i = task * kTaskRows; i < std::min(rows, (task + 1) * kTaskRows); ++i) {
      int64_t pair = 0;
      for (int64_t axis = 0; axis < axes; ++axis) {
        const int64_t end = rope.sections.empty() ? pairs : pair + rope.sections[static_cast<size_t>(axis)];
        const float position = static_cast<float>(positions[static_cast<size_t>(axis * rows + i)]);
        for (; pair < end; ++pair) {
          // Rounded to float32, as in the reference.
          const double angle = position * rope.frequencies[static_cast<size_t>(pair)];
          angles.cosines.row(i)[pair] = static_cast<float>(std::cos(angle));
          angles.sines.row(i)[pair] = static_cast<float>(std::sin(angle));
        }
      }
    }
  });
}

void cpu_ops::apply_rope(Context& context, const RopeAngles& angles, const TensorView& x) {
  const int64_t pairs = angles.cosines.dim(1);
  CHECK(x.rank == 3 && x.dtype == DType::kFloat32 && x.stride[2] == 1);
  CHECK(x.dim(0) == angles.cosines.dim(0) && 2 * pairs <= x.dim(2));
  if (context.dry_run || x.num_elements() == 0) return;
  const int64_t rows = x.dim(0), heads = x.dim(1);
  const auto turn = angles.pairs == RopePairs::kHalves ? turn_halves : turn_neighbours;
  const int64_t task_rows = std::max<int64_t>(1, kRopeTaskElements / (heads * x.dim(2)));
  cpu_of(context).threads().parallel_for(ceil_div(rows, task_rows), [&](int64_t task, int) {
    for (int64_t i = task * task_rows; i < std::min(rows, (task + 1) * task_rows); ++i) {
      const float* cosines = angles.cosines.row(i);
      const float* sines = angles.sines.row(i);
      for (int64_t head = 0; head < heads; ++head) {
        turn(cosines, sines, pairs, x.row(i) + head * x.stride[1]);
      }
    }
  });
}

}  // namespace transept
