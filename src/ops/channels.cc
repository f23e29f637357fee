#include "ops/channels.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/cpu_ops.h"

namespace transept {
namespace {

// Below this many products a task is not worth waking a thread for.
constexpr int64_t kTaskProducts = 1 << 15;
// Rows that are summed before they are added to the rows before them: long sums stay exact.
constexpr int64_t kRowsASum = 128;
constexpr int64_t kChannelsATask = 8;

void check_matrix(const TensorView& x) { CHECK(x.rank == 2 && x.dtype == DType::kFloat32 && x.stride[1] == 1); }

// Runs rows [begin, end) of `rows` in tasks of kTaskProducts.
template <typename F>
void for_rows(Context& context, int64_t rows, int64_t products_a_row, const F& run) {
  const int64_t task_rows = std::max<int64_t>(1, kTaskProducts / std::max<int64_t>(1, products_a_row));
  cpu_of(context).threads().parallel_for(ceil_div(rows, task_rows), [&](int64_t task, int) {
    run(task * task_rows, std::min(rows, (task + 1) * task_rows));
  });
}

void add_scaled(const float* factors, const float* from, int64_t n, float* to) {
  for (int64_t j = 0; j < n; ++j) to[j] += factors[j] * from[j];
}

void add_scaled(float factor, const float* from, int64_t n, float* to) {
  for (int64_t j = 0; j < n; ++j) to[j] += factor * from[j];
}

}  // namespace

void cpu_ops::add_depthwise_conv(Context& context, const TensorView& x, int64_t height, int64_t width,
                                 const float* weight, const float* bias, const TensorView& y) {
  check_matrix(x);
  check_matrix(y);
  const int64_t n = x.dim(1);
  CHECK(y.dim(0) == x.dim(0) && y.dim(1) == n);
  if (context.dry_run) return;
  CHECK(x.dim(0) == height * width && x.raw != y.raw);
  for_rows(context, x.dim(0), 10 * n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t top = i / width - 1, left = i % width - 1;
      float* out = y.row(i);
      for (int64_t j = 0; j < n; ++j) out[j] = x.row(i)[j] + bias[j];
      for (int64_t tap = 0; tap < 9; ++tap) {
        const int64_t row = top + tap / 3, column = left + tap % 3;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        add_scaled(weight + tap * n, x.row(row * width + column), n, out);
      }
    }
  });
}

void cpu_ops::add_channel_products(Context& context, const TensorView& q, const TensorView& k, const TensorView& sums) {
  check_matrix(q);
  check_matrix(k);
  check_matrix(sums);
  const int64_t rows = q.dim(0), n = q.dim(1), width = sums.dim(1);
  CHECK(k.dim(0) == rows && k.dim(1) == n && sums.dim(0) == n && width > 0 && n % width == 0);
  const Arena::Scope scope(context.arena);
  const TensorView parts = context.arena.tensor(DType::kFloat32, {n, width});
  if (context.dry_run) return;
  const int64_t tasks_a_group = ceil_div(width, kChannelsATask);
  cpu_of(context).threads().parallel_for(n / width * tasks_a_group, [&](int64_t task, int) {
    const int64_t first = task / tasks_a_group * width;
    const int64_t begin = first + task % tasks_a_group * kChannelsATask;
    const int64_t end = std::min(begin + kChannelsATask, first + width);
    for (int64_t row = 0; row < rows; row += kRowsASum) {
      std::fill(parts.row(begin), parts.row(begin) + (end - begin) * width, 0.0f);
      for (int64_t i = row; i < std::min(row + kRowsASum, rows); ++i) {
        for (int64_t c = begin; c < end; ++c) add_scaled(q.row(i)[c], k.row(i) + first, width, parts.row(c));
      }
      for (int64_t c = begin; c < end; ++c) add_scaled(1.0f, parts.row(c), width, sums.row(c));
    }
  });
}

void cpu_ops::softmax_rows(Context& context, float scale, const TensorView& x) {
  check_matrix(x);
  if (context.dry_run || x.dim(1) == 0) return;
  for_rows(context, x.dim(0), 16 * x.dim(1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::span<float> row(x.row(i), static_cast<size_t>(x.dim(1)));
      const float most = *std::ranges::max_element(row) * scale;
      float sum = 0;
      for (float& value : row) sum += value = std::exp(value * scale - most);
      for (float& value : row) value /= sum;
    }
  });
}

void cpu_ops::mix_channels(Context& context, const TensorView& v, const TensorView& weights, const TensorView& y) {
  check_matrix(v);
  check_matrix(weights);
  check_matrix(y);
  const int64_t rows = v.dim(0), n = v.dim(1), width = weights.dim(1);
  CHECK(y.dim(0) == rows && y.dim(1) == n && weights.dim(0) == n && width > 0 && n % width == 0);
  const Arena::Scope scope(context.arena);
  const TensorView by_input = context.arena.tensor(DType::kFloat32, {n, width});
  if (context.dry_run) return;
  CHECK(v.raw != y.raw);
  for (int64_t c = 0; c < n; ++c) {
    const int64_t first = c / width * width;
    for (int64_t d = 0; d < width; ++d) by_input.row(first + d)[c - first] = weights.row(c)[d];
  }
  for_rows(context, rows, n * width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::fill_n(y.row(i), n, 0.0f);
      for (int64_t d = 0; d < n; ++d) {
        add_scaled(v.row(i)[d], by_input.row(d), width, y.row(i) + d / width * width);
      }
    }
  });
}

void cpu_ops::mean_of_rows(Context& context, const TensorView& x, const TensorView& y) {
  check_matrix(x);
  check_matrix(y);
  CHECK(y.dim(0) == 1 && y.dim(1) == x.dim(1));
  const Arena::Scope scope(context.arena);
  const std::span<double> sums = context.arena.allocate_span<double>(x.dim(1));
  if (context.dry_run) return;
  CHECK(x.dim(0) > 0);
  std::ranges::fill(sums, 0.0);
  for (int64_t i = 0; i < x.dim(0); ++i) {
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += static_cast<double>(x.row(i)[j]);
  }
  for (size_t j = 0; j < sums.size(); ++j) y.row(0)[j] = static_cast<float>(sums[j] / static_cast<double>(x.dim(0)));
}

}  // namespace transept
