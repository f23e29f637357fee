#include "ops/round_inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/cpu_ops.h"

namespace transept {
namespace {

// Below this many inputs a task is not worth waking a thread for.
constexpr int64_t kTaskInputs = 1 << 15;
constexpr float kMostFloat8 = 448;

// NaN stays NaN.
float clamped(float value, float least, float most) {
  const float raised = value < least ? least : value;
  return raised > most ? most : raised;
}

// Nearest, ties to even, of a number within [-448, 448], or NaN.
float to_float8_e4m3(float value) {
  constexpr float kLeastNormal = 0x1p-6f;
  // Below, numbers are 2^-9 apart, which is what float32 has at this one.
  constexpr float kSubnormalShift = 0x1p14f;
  constexpr uint32_t kDropped = 20;  // of 23 bits of the fraction 3 are left
  const float size = std::abs(value);
  const float small = (size + kSubnormalShift) - kSubnormalShift;
  const auto bits = std::bit_cast<uint32_t>(size);
  const uint32_t rounded = (bits + ((uint32_t{1} << (kDropped - 1)) - 1) + ((bits >> kDropped) & 1)) >> kDropped
                                                                                                            << kDropped;
  const float result = size < kLeastNormal ? small : size <= kMostFloat8 ? std::bit_cast<float>(rounded) : value;
  return std::copysign(result, value);
}

struct Scale {
  float scale, zero;
};

// low, high: of the entries, 0 included; strange: 0, or NaN where one is not finite.
Scale scale_of(const InputQuantization& inputs, float low, float high, float strange) {
  const bool is_float = inputs.type == InputQuantization::Type::kFloat8;
  const auto range = is_float ? 2 * kMostFloat8 : static_cast<float>((1 << inputs.bits) - 1);
  const float least = is_float ? -kMostFloat8 : -static_cast<float>(1 << (inputs.bits - 1));
  Scale found = {};
  if (inputs.is_symmetric) {
    found.scale = std::max(-low, high) / (range / 2);
  } else {
    found.scale = (high - low) / range;
    // Nothing but zeros: any zero will do.
    found.zero = found.scale == 0 ? least : std::nearbyint(clamped(least - low / found.scale, least, least + range));
  }
  if (found.scale == 0) found.scale = std::numeric_limits<float>::epsilon();
  found.scale += strange;
  return found;
}

RowStatistics statistics_of(const float* x, int64_t n) {
  RowStatistics found = {0, 0, 0, 0, 0};
  for (int64_t j = 0; j < n; ++j) {
    found.low = x[j] < found.low ? x[j] : found.low;
    found.high = x[j] > found.high ? x[j] : found.high;
    found.strange += x[j] * 0.0f;
  }
  return found;
}

void round_integers(const InputQuantization& inputs, Scale of, const float* x, int64_t n, float* y) {
  const float least = -static_cast<float>(1 << (inputs.bits - 1)), most = -least - 1;
  for (int64_t j = 0; j < n; ++j) {
    y[j] = (std::nearbyint(clamped(x[j] / of.scale + of.zero, least, most)) - of.zero) * of.scale;
  }
}

void round_floats(Scale of, const float* x, int64_t n, float* y) {
  for (int64_t j = 0; j < n; ++j) y[j] = to_float8_e4m3(clamped(x[j] / of.scale, -kMostFloat8, kMostFloat8)) * of.scale;
}

void round_some(const InputQuantization& inputs, const RowStatistics* given, const float* x, int64_t n, float* y) {
  Scale of = {inputs.scale, static_cast<float>(inputs.zero)};
  if (!inputs.is_static()) {
    const RowStatistics found = given != nullptr ? *given : statistics_of(x, n);
    of = scale_of(inputs, found.low, found.high, found.strange);
  }
  if (inputs.type == InputQuantization::Type::kFloat8) {
    round_floats(of, x, n, y);
  } else {
    round_integers(inputs, of, x, n, y);
  }
}

}  // namespace

void cpu_ops::round_inputs(Context& context, const TensorView& x, const InputQuantization& inputs,
                           const RowStatistics* statistics, const TensorView& y) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dtype == DType::kFloat32 && y.dtype == DType::kFloat32);
  CHECK(x.dim(0) == y.dim(0) && x.dim(1) == y.dim(1) && inputs.rounds());
  CHECK((x.stride[1] == 1 && y.stride[1] == 1) || x.dim(1) <= 1);
  if (context.dry_run) return;
  const int64_t m = x.dim(0), k = x.dim(1);
  const int64_t group = inputs.group > 0 ? inputs.group : std::max<int64_t>(k, 1);
  CHECK(statistics == nullptr || group >= k);
  const int64_t task_rows = std::max<int64_t>(1, kTaskInputs / std::max<int64_t>(1, k));
  cpu_of(context).threads().parallel_for(ceil_div(m, task_rows), [&](int64_t task, int) {
    for (int64_t i = task * task_rows; i < std::min(m, (task + 1) * task_rows); ++i) {
      for (int64_t j = 0; j < k; j += group) {
        round_some(inputs, statistics == nullptr ? nullptr : statistics + i, x.row(i) + j, std::min(group, k - j),
                   y.row(i) + j);
      }
    }
  });
}

}  // namespace transept
