#include "ops/conv1d.h"

#include <algorithm>

#include "base/checked_math.h"
#include "ops/activation.h"
#include "ops/cpu_device.h"
#include "ops/cpu_ops.h"
#include "ops/kernels.h"
#include "ops/rows.h"
#include "ops/transpose.h"

namespace transept {

PaddedRows padded_rows(Context& context, int64_t length, int64_t channels, int64_t padding) {
  PaddedRows padded;
  padded.whole = context.arena.tensor(DType::kFloat32, {length + 2 * padding, channels});
  padded.rows = padded.whole.rows(padding, padding + length);
  fill_zero(context, padded.whole.rows(0, padding));
  fill_zero(context, padded.whole.rows(padding + length, length + 2 * padding));
  return padded;
}

TensorView conv1d_windows(const TensorView& x, const Conv1dShape& shape) {
  CHECK(x.rank == 2 && (x.stride[0] == x.dim(1) || x.dim(0) <= 1));
  TensorView windows = x;
  windows.shape[0] = conv1d_output_length(x.dim(0), {.kernel = shape.kernel, .stride = shape.stride});
  windows.shape[1] = shape.kernel * x.dim(1);
  windows.stride[0] = shape.stride * x.dim(1);
  return windows;
}

void conv1d_reference(const TensorView& x, const TensorView& w, const Conv1dShape& shape, const Epilogue& epilogue,
                      const TensorView& y) {
  CHECK(w.rank == 3 && w.dim(1) == x.dim(1) && w.dim(2) == shape.kernel && y.dim(1) == w.dim(0));
  CHECK(y.dim(0) == conv1d_output_length(x.dim(0), shape));
  for (int64_t i = 0; i < y.dim(0); ++i) {
    for (int64_t j = 0; j < y.dim(1); ++j) {
      double sum = epilogue.bias == nullptr ? 0 : epilogue.bias[j];
      for (int64_t tap = 0; tap < shape.kernel; ++tap) {
        const int64_t t = i * shape.stride - shape.padding + tap;
        if (t < 0 || t >= x.dim(0)) continue;
        for (int64_t c = 0; c < x.dim(1); ++c) {
          sum += static_cast<double>(x.row(t)[c]) * w.f32()[(j * x.dim(1) + c) * shape.kernel + tap];
        }
      }
      const float activated = activate(epilogue.activation, static_cast<float>(sum));
      y.row(i)[j] = epilogue.residual.empty() ? activated : activated + epilogue.residual.row(i)[j];
    }
  }
}

void cpu_ops::to_time_major(Context& context, std::span<const float> x, const TensorView& y) {
  CHECK(y.rank == 2 && y.stride[0] == y.dim(1));
  if (context.dry_run) return;
  const int64_t length = y.dim(0), channels = y.dim(1);
  CHECK(static_cast<int64_t>(x.size()) == length * channels);
  constexpr int64_t kTaskRows = 256;
  const int64_t tasks = ceil_div(length, kTaskRows);
  cpu_of(context).threads().parallel_for(tasks, [&](int64_t task, int) {
    const int64_t begin = even_split(length, tasks, task), end = even_split(length, tasks, task + 1);
    transpose(x.data() + begin, length, channels, end - begin, y.row(begin), channels);
  });
}

}  // namespace transept
