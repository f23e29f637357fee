#include "ops/rows.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/cpu_ops.h"

namespace transept {
namespace {

// Below this many elements a task is not worth waking a thread for.
constexpr int64_t kRowTaskElements = 8192;

// Elements of a row of n values: bytes of float32, unless the cache is bfloat16.
int64_t row_elements(const TensorView& cache, int64_t n) {
  return cache.dtype == DType::kUInt8 ? n * static_cast<int64_t>(sizeof(float)) : n;
}

// Where a slot's row of n values begins.
unsigned char* row_of_slot(const TensorView& cache, int64_t slot, int32_t block_size, int64_t n) {
  const int64_t block = slot / block_size;
  DCHECK(slot >= 0 && block < cache.dim(0));
  const int64_t element = block * cache.stride[0] + slot % block_size * row_elements(cache, n);
  return static_cast<unsigned char*>(cache.raw) + element * static_cast<int64_t>(dtype_bytes(cache.dtype));
}

void check_row_cache(const TensorView& cache, int32_t block_size, int64_t n) {
  CHECK(block_size > 0 && cache.rank == 2 && cache.stride[1] == 1);
  CHECK(cache.dim(1) >= block_size * row_elements(cache, n));
}

// Calls then(i, rows[i]) for each row of n values, on the context's threads if there are many. A dry run calls nothing.
template <class Then>
void for_each_listed_row(Context& context, View<int32_t> rows, int64_t n, const Then& then) {
  if (context.dry_run || rows.empty() || n == 0) return;
  const auto count = static_cast<int64_t>(rows.size()), task_rows = std::max<int64_t>(1, kRowTaskElements / n);
  const auto run = [&](int64_t task, int) {
    for (int64_t i = task * task_rows; i < std::min(count, (task + 1) * task_rows); ++i) {
      then(i, rows[static_cast<size_t>(i)]);
    }
  };
  if (count <= task_rows) {
    run(0, 0);
  } else {
    cpu_of(context).threads().parallel_for(ceil_div(count, task_rows), run);
  }
}

// Element i of a row of `table`.
template <class Use>
void for_each_number(const TensorView& table, int64_t row, const Use& use) {
  const int64_t n = table.dim(1);
  const auto* const from = static_cast<const unsigned char*>(table.raw) +
                           row * table.stride[0] * static_cast<int64_t>(dtype_bytes(table.dtype));
  for (int64_t i = 0; i < n; ++i) {
    if (table.dtype == DType::kFloat32) {
      float value = 0;
      std::memcpy(&value, from + i * static_cast<int64_t>(sizeof value), sizeof value);
      use(i, value);
      continue;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, from + i * static_cast<int64_t>(sizeof bits), sizeof bits);
    use(i, table.dtype == DType::kFloat16 ? float16_to_float(bits) : bfloat16_to_float(bits));
  }
}

void check_table(const TensorView& table, View<int32_t> rows, const TensorView& y) {
  CHECK(table.rank == 2 && y.rank == 2 && table.dim(1) == y.dim(1) && table.stride[1] == 1 && y.stride[1] == 1);
  CHECK(table.dtype == DType::kFloat32 || table.dtype == DType::kFloat16 || table.dtype == DType::kBFloat16);
  CHECK(y.dim(0) == static_cast<int64_t>(rows.size()));
}

void widen_row(const unsigned char* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, from + i * static_cast<int64_t>(sizeof bits), sizeof bits);
    to[i] = bfloat16_to_float(bits);
  }
}

}  // namespace

void cpu_ops::gather_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dim(1) == y.dim(1) && x.stride[1] == 1 && y.stride[1] == 1);
  CHECK(y.dim(0) == static_cast<int64_t>(rows.size()));
  const size_t row_bytes = static_cast<size_t>(x.dim(1)) * sizeof(float);
  for_each_listed_row(context, rows, x.dim(1), [&](int64_t i, int32_t row) {
    DCHECK(row == kNoRow || (row >= 0 && row < x.dim(0)));
    if (row == kNoRow) {
      std::memset(y.row(i), 0, row_bytes);
    } else {
      std::memcpy(y.row(i), x.row(row), row_bytes);
    }
  });
}

void cpu_ops::look_up_rows(Context& context, const TensorView& table, View<int32_t> rows, float scale,
                           const TensorView& y) {
  check_table(table, rows, y);
  for_each_listed_row(context, rows, y.dim(1), [&](int64_t i, int32_t row) {
    DCHECK(row >= 0 && row < table.dim(0));
    for_each_number(table, row, [to = y.row(i), scale](int64_t j, float value) { to[j] = scale * value; });
  });
}

void cpu_ops::add_looked_up_rows(Context& context, const TensorView& table, View<int32_t> rows, const TensorView& y) {
  check_table(table, rows, y);
  for_each_listed_row(context, rows, y.dim(1), [&](int64_t i, int32_t row) {
    DCHECK(row >= 0 && row < table.dim(0));
    for_each_number(table, row, [to = y.row(i)](int64_t j, float value) { to[j] += value; });
  });
}

void cpu_ops::clear_missing_rows(Context& context, View<int32_t> rows, const TensorView& y) {
  CHECK(y.rank == 2 && y.stride[1] == 1 && y.dim(0) == static_cast<int64_t>(rows.size()));
  if (context.dry_run) return;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == kNoRow) std::fill_n(y.row(static_cast<int64_t>(i)), y.dim(1), 0.0f);
  }
}

void cpu_ops::scatter_add_rows(Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dim(1) == y.dim(1) && x.stride[1] == 1 && y.stride[1] == 1);
  CHECK(x.dim(0) == static_cast<int64_t>(rows.size()));
  for_each_listed_row(context, rows, x.dim(1), [&](int64_t i, int32_t row) {
    DCHECK(row == kNoRow || (row >= 0 && row < y.dim(0)));
    if (row == kNoRow) return;
    const float* from = x.row(i);
    float* to = y.row(row);
    for (int64_t j = 0; j < x.dim(1); ++j) to[j] += from[j];
  });
}

void cpu_ops::upload(Context& context, std::span<const float> x, const TensorView& y) {
  CHECK(y.rank == 2 && y.dtype == DType::kFloat32 && y.stride[1] == 1 && y.stride[0] == y.dim(1));
  if (context.dry_run) return;
  CHECK(static_cast<int64_t>(x.size()) == y.num_elements());
  if (!x.empty()) std::memcpy(y.f32(), x.data(), x.size_bytes());
}

void cpu_ops::fill_zero(Context& context, const TensorView& y) {
  CHECK(y.rank == 2 && y.dtype == DType::kFloat32 && y.stride[1] == 1 && y.stride[0] == y.dim(1));
  if (!context.dry_run) std::fill_n(y.f32(), y.num_elements(), 0.0f);
}

void cpu_ops::write_rows(Context& context, MakeRow make_row, const TensorView& y) {
  CHECK(y.rank == 2 && y.stride[1] == 1);
  if (context.dry_run) return;
  constexpr int64_t kTaskRows = 16;  // enough work to be worth handing out
  const int64_t rows = y.dim(0);
  cpu_of(context).threads().parallel_for(ceil_div(rows, kTaskRows), [&](int64_t task, int) {
    for (int64_t i = task * kTaskRows; i < std::min(rows, (task + 1) * kTaskRows); ++i) {
      make_row(i, std::span(y.row(i), static_cast<size_t>(y.dim(1))));
    }
  });
}

void cpu_ops::add_rows(Context& context, MakeRow make_row, const TensorView& y) {
  const Arena::Scope scope(context.arena);
  const TensorView rows = context.arena.tensor(DType::kFloat32, {y.dim(0), y.dim(1)});
  if (context.dry_run) return;
  cpu_ops::write_rows(context, make_row, rows);
  for (int64_t i = 0; i < y.dim(0); ++i) {
    float* out = y.row(i);
    const float* row = rows.row(i);
    for (int64_t j = 0; j < y.dim(1); ++j) out[j] += row[j];
  }
}

void cpu_ops::add_gated(Context& context, const TensorView& x, const float* gate, int64_t gate_size,
                        const TensorView& y) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dim(0) == y.dim(0) && x.dim(1) == y.dim(1));
  CHECK(x.stride[1] == 1 && y.stride[1] == 1);
  const int64_t rows = y.dim(0), n = y.dim(1);
  CHECK(gate_size <= 1 || gate_size == n);
  if (context.dry_run || rows == 0 || n == 0) return;
  const float common = gate_size == 0 ? 1.0f : gate[0];
  const bool by_column = gate_size > 1;
  const int64_t task_rows = std::max<int64_t>(1, kRowTaskElements / n);
  cpu_of(context).threads().parallel_for(ceil_div(rows, task_rows), [&](int64_t task, int) {
    for (int64_t i = task * task_rows; i < std::min(rows, (task + 1) * task_rows); ++i) {
      const float* from = x.row(i);
      float* to = y.row(i);
      for (int64_t j = 0; j < n; ++j) to[j] += (by_column ? gate[j] : common) * from[j];
    }
  });
}

void cpu_ops::copy_rows_of_kind(Context& context, const TensorView& x, View<uint8_t> kinds, uint8_t kind,
                                const TensorView& y) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dim(1) == y.dim(1) && x.stride[1] == 1 && y.stride[1] == 1);
  if (context.dry_run) return;
  CHECK(x.dim(0) == static_cast<int64_t>(kinds.size()) && y.dim(0) == x.dim(0));
  const size_t row_bytes = static_cast<size_t>(x.dim(1)) * sizeof(float);
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == kind) std::memcpy(y.row(static_cast<int64_t>(i)), x.row(static_cast<int64_t>(i)), row_bytes);
  }
}

void cpu_ops::write_row_slots(Context& context, const TensorView& x, View<int64_t> slots, int32_t block_size,
                              const TensorView& cache) {
  CHECK(x.rank == 2 && x.stride[1] == 1 && x.dim(0) == static_cast<int64_t>(slots.size()));
  if (context.dry_run) return;
  CHECK(cache.dtype == DType::kUInt8);
  check_row_cache(cache, block_size, x.dim(1));
  const size_t row_bytes = static_cast<size_t>(x.dim(1)) * sizeof(float);
  for (size_t i = 0; i < slots.size(); ++i) {
    std::memcpy(row_of_slot(cache, slots[i], block_size, x.dim(1)), x.row(static_cast<int64_t>(i)), row_bytes);
  }
}

void cpu_ops::read_row_slots(Context& context, const TensorView& cache, View<int64_t> slots, int32_t block_size,
                             View<int32_t> rows, const TensorView& y) {
  CHECK(y.rank == 2 && y.stride[1] == 1 && rows.size() == slots.size());
  if (context.dry_run || rows.empty()) return;
  CHECK(cache.dtype == DType::kUInt8 || cache.dtype == DType::kBFloat16);
  check_row_cache(cache, block_size, y.dim(1));
  const size_t row_bytes = static_cast<size_t>(y.dim(1)) * sizeof(float);
  for (size_t i = 0; i < slots.size(); ++i) {
    DCHECK(rows[i] >= 0 && rows[i] < y.dim(0));
    const unsigned char* row = row_of_slot(cache, slots[i], block_size, y.dim(1));
    if (cache.dtype == DType::kUInt8) {
      std::memcpy(y.row(rows[i]), row, row_bytes);
    } else {
      widen_row(row, y.row(rows[i]), y.dim(1));
    }
  }
}

}  // namespace transept
