#include "ops/norm.h"

#include <algorithm>

#include "ops/cpu_device.h"
#include "ops/cpu_ops.h"
#include "ops/select_kernels.h"

namespace transept {
namespace {

// Below this many elements waking the threads costs more than they save.
constexpr int64_t kSerialElements = 8192;

// Calls row(i) for every row, on the context's threads.
template <class Row>
void for_each_row(Context& context, const TensorView& x, const TensorView& y, Row&& row) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dim(0) == y.dim(0) && x.dim(1) == y.dim(1));
  CHECK(x.dtype == DType::kFloat32 && y.dtype == DType::kFloat32 && x.stride[1] == 1 && y.stride[1] == 1);
  const int64_t rows = x.dim(0);
  const int64_t n = x.dim(1);
  if (context.dry_run || rows == 0 || n == 0) return;
  const int64_t tasks =
      rows * n < kSerialElements ? 1 : std::min<int64_t>(rows, int64_t{4} * cpu_of(context).threads().num_threads());
  cpu_of(context).threads().parallel_for(tasks, [&](int64_t task, int) {
    for (int64_t i = even_split(rows, tasks, task); i < even_split(rows, tasks, task + 1); ++i) row(i);
  });
}

}  // namespace

void cpu_ops::layer_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                         const TensorView& y) {
  const OpKernels& kernels = op_kernels(cpu_of(context).isa());
  for_each_row(context, x, y,
               [&](int64_t i) { kernels.layer_norm(x.row(i), x.dim(1), weight, bias, epsilon, y.row(i)); });
}

void cpu_ops::group_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                         const TensorView& y) {
  const Arena::Scope scope(context.arena);
  const std::span<float> row_sums = context.arena.allocate_span<float>(x.dim(0));
  if (context.dry_run) return;
  const OpKernels& kernels = op_kernels(cpu_of(context).isa());
  // The mean over x of f(row), rows added in order, whoever computed them.
  const auto mean_of = [&](auto&& f) {
    for_each_row(context, x, y, [&](int64_t i) { row_sums[static_cast<size_t>(i)] = f(x.row(i)); });
    double total = 0;
    for (const float sum : row_sums) total += sum;
    return static_cast<float>(total / static_cast<double>(x.num_elements()));
  };
  NormStatistics of{.epsilon = epsilon};
  of.mean = mean_of([&](const float* row) { return kernels.sum(row, x.dim(1)); });
  of.variance = mean_of([&](const float* row) { return kernels.deviation(row, x.dim(1), of.mean); });
  for_each_row(context, x, y, [&](int64_t i) { kernels.normalize(x.row(i), x.dim(1), of, weight, bias, y.row(i)); });
}

void cpu_ops::rms_norm(Context& context, const TensorView& x, const float* weight, float epsilon, const TensorView& y) {
  const OpKernels& kernels = op_kernels(cpu_of(context).isa());
  for_each_row(context, x, y, [&](int64_t i) { kernels.rms_norm(x.row(i), x.dim(1), weight, epsilon, y.row(i)); });
}

}  // namespace transept
