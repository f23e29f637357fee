#include "ops/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/cpu_ops.h"
#include "ops/select_kernels.h"

namespace transept {

float activate(Activation activation, float x) {
  const double d = x;
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return x < 0 ? 0 : x;
    case Activation::kGelu: return static_cast<float>(d * 0.5 * std::erfc(-d / std::numbers::sqrt2));
    case Activation::kGeluTanh: {
      const double u = std::sqrt(2 / std::numbers::pi) * (d + 0.044715 * d * d * d);
      return static_cast<float>(d * 0.5 * (1 + std::tanh(u)));
    }
    case Activation::kSilu: return static_cast<float>(d / (1 + std::exp(-d)));
    case Activation::kTanh: return static_cast<float>(std::tanh(d));
    case Activation::kQuickGelu: return static_cast<float>(d / (1 + std::exp(-1.702 * d)));
  }
  return x;
}

void cpu_ops::gated_activation(Context& context, Activation activation, const TensorView& gate, const TensorView& x,
                               const TensorView& y) {
  for (const TensorView* view : {&gate, &x, &y}) {
    CHECK(view->rank == 2 && view->dtype == DType::kFloat32 && view->stride[1] == 1);
    CHECK(view->dim(0) == y.dim(0) && view->dim(1) == y.dim(1));
  }
  // Elements a task: an activation costs a few nanoseconds, waking threads a microsecond.
  constexpr int64_t kTaskElements = 4096;
  const int64_t rows = y.dim(0), n = y.dim(1);
  if (context.dry_run || rows == 0 || n == 0) return;
  const OpKernels& kernels = op_kernels(cpu_of(context).isa());
  const int64_t pieces = ceil_div(n, kTaskElements);  // of a row
  const int64_t rows_a_task = std::max<int64_t>(1, kTaskElements / n);
  cpu_of(context).threads().parallel_for(ceil_div(rows, rows_a_task) * pieces, [&](int64_t task, int) {
    const int64_t first = task / pieces * rows_a_task, begin = even_split(n, pieces, task % pieces);
    const int64_t count = even_split(n, pieces, task % pieces + 1) - begin;
    for (int64_t i = first; i < std::min(rows, first + rows_a_task); ++i) {
      kernels.gated_activation(activation, gate.row(i) + begin, x.row(i) + begin, count, y.row(i) + begin);
    }
  });
}

}  // namespace transept
