#include "ops/norm.h"

#include <algorithm>

#include "ops/select_kernels.h"

namespace transept {
namespace {

// Below this many elements waking the threads costs more than they save.
constexpr int64_t kSerialElements = 8192;

// Calls row(x's row, y's row) for every row, on the context's threads.
template <class Row>
void for_each_row(Context& context, const TensorView& x, const TensorView& y, Row&& row) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dim(0) == y.dim(0) && x.dim(1) == y.dim(1));
  CHECK(x.dtype == DType::kFloat32 && y.dtype == DType::kFloat32 && x.stride[1] == 1 && y.stride[1] == 1);
  const int64_t rows = x.dim(0);
  const int64_t n = x.dim(1);
  if (context.dry_run || rows == 0 || n == 0) return;
  const int64_t tasks =
      rows * n < kSerialElements ? 1 : std::min<int64_t>(rows, int64_t{4} * context.threads.num_threads());
  context.threads.parallel_for(tasks, [&](int64_t task, int) {
    for (int64_t i = even_split(rows, tasks, task); i < even_split(rows, tasks, task + 1); ++i) row(x.row(i), y.row(i));
  });
}

}  // namespace

void layer_norm(Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
                const TensorView& y) {
  const OpKernels& kernels = op_kernels(context.isa);
  for_each_row(context, x, y,
               [&](const float* from, float* to) { kernels.layer_norm(from, x.dim(1), weight, bias, epsilon, to); });
}

void rms_norm(Context& context, const TensorView& x, const float* weight, float epsilon, const TensorView& y) {
  const OpKernels& kernels = op_kernels(context.isa);
  for_each_row(context, x, y,
               [&](const float* from, float* to) { kernels.rms_norm(from, x.dim(1), weight, epsilon, to); });
}

}  // namespace transept
