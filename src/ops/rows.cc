#include "ops/rows.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

// Below this many elements a task is not worth waking a thread for.
constexpr int64_t kTaskElements = 8192;

}  // namespace

void gather_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dim(1) == y.dim(1) && x.stride[1] == 1 && y.stride[1] == 1);
  CHECK(y.dim(0) == static_cast<int64_t>(rows.size()));
  if (context.dry_run) return;
  const size_t row_bytes = static_cast<size_t>(x.dim(1)) * sizeof(float);
  for (size_t i = 0; i < rows.size(); ++i) {
    DCHECK(rows[i] >= 0 && rows[i] < x.dim(0));
    std::memcpy(y.row(static_cast<int64_t>(i)), x.row(rows[i]), row_bytes);
  }
}

void add_gated(Context& context, const TensorView& x, std::span<const float> gate, const TensorView& y) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dim(0) == y.dim(0) && x.dim(1) == y.dim(1));
  CHECK(x.stride[1] == 1 && y.stride[1] == 1);
  const int64_t rows = y.dim(0), n = y.dim(1);
  CHECK(gate.size() <= 1 || static_cast<int64_t>(gate.size()) == n);
  if (context.dry_run || rows == 0 || n == 0) return;
  const float common = gate.empty() ? 1.0f : gate[0];
  const bool by_column = gate.size() > 1;
  const int64_t task_rows = std::max<int64_t>(1, kTaskElements / n);
  context.threads.parallel_for(ceil_div(rows, task_rows), [&](int64_t task, int) {
    for (int64_t i = task * task_rows; i < std::min(rows, (task + 1) * task_rows); ++i) {
      const float* from = x.row(i);
      float* to = y.row(i);
      for (int64_t j = 0; j < n; ++j) to[j] += (by_column ? gate[static_cast<size_t>(j)] : common) * from[j];
    }
  });
}

}  // namespace transept
