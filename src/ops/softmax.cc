#include "ops/softmax.h"

#include <cmath>
#include <limits>

#include "ops/cpu_device.h"
#include "ops/select_kernels.h"

namespace transept {

float log_sum_exp(const Context& context, std::span<const float> x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (context.dry_run || x.empty()) return -kInfinity;
  float max = 0;
  const float sum = op_kernels(cpu_of(context).isa()).log_sum_exp_max(x.data(), static_cast<int64_t>(x.size()), &max);
  if (std::isfinite(max)) return max + std::log(sum);
  // Infinite maximum: differences are NaN. Told apart by hand.
  for (const float value : x) {
    if (std::isnan(value)) return value;
  }
  return max;
}

int64_t arg_max(const Context& context, std::span<const float> x) {
  if (context.dry_run) return -1;
  return op_kernels(cpu_of(context).isa()).arg_max(x.data(), static_cast<int64_t>(x.size()));
}

}  // namespace transept
