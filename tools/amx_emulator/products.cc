// Products of layers on tiles (ops/tile_kernel.h): as ops/gemm.cc calls them, of matrices as ops/packed_matrix.h
// stores them.
#include <string.h>

#include "cases.h"
#include "ops/gemm_kernel.h"

namespace transept {
namespace {

enum class Kind { kInt8, kBFloat16 };

struct Case {
  Kind kind;
  int64_t m, n, k;
  bool is_wide = false;
  bool has_rows = false;     // of twice as many rows of x, some
  float extreme = 0;         // every input is 2, every weight 127 times this
  bool is_positive = false;  // weights are not below 0
};

struct Weights {
  int64_t depth, panels;
  void* bytes;
  float* scales;
  int32_t* sums;
};

uint16_t to_bfloat16(float x) {  // of numbers that are finite
  const uint32_t bits = bits_of(x);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

Weights make_weights(const Case& of, Memory& memory, Numbers& numbers) {
  const int64_t step = of.kind == Kind::kInt8 ? 64 : 32, group = of.kind == Kind::kInt8 ? 4 : 2;
  Weights w = {};
  w.depth = (of.k + step - 1) / step * step;
  w.panels = (of.n + kPanelWidth - 1) / kPanelWidth;
  const int64_t count = w.depth * w.panels * kPanelWidth, columns = w.panels * kPanelWidth;
  auto* const integers = memory.take<int8_t>(of.kind == Kind::kInt8 ? count : 0);
  auto* const halves = memory.take<uint16_t>(of.kind == Kind::kInt8 ? 0 : count);
  w.bytes = of.kind == Kind::kInt8 ? static_cast<void*>(integers) : halves;
  memset(w.bytes, 0, static_cast<size_t>(count * (of.kind == Kind::kInt8 ? 1 : 2)));
  w.scales = memory.take<float>(columns);
  w.sums = memory.take<int32_t>(columns);
  for (int64_t c = 0; c < columns; ++c) {
    w.scales[c] = c < of.n ? (2 + numbers.between_ones()) / 1000 : 0;
    w.sums[c] = 0;
    for (int64_t t = 0; c < of.n && t < of.k; ++t) {
      const int64_t place = c / kPanelWidth * w.depth * kPanelWidth + t / group * group * kPanelWidth +
                            c % kPanelWidth * group + t % group;
      if (of.kind == Kind::kBFloat16) {
        halves[place] = to_bfloat16(numbers.between_ones());
        continue;
      }
      const int value =
          of.extreme != 0 ? static_cast<int>(127 * of.extreme) : numbers.integer(of.is_positive ? 0 : -127, 127);
      integers[place] = static_cast<int8_t>(value);
      w.sums[c] += value;
    }
  }
  return w;
}

// y is whatever lies between its rows, too: nobody may write there.
struct Floats {
  float* data;
  int64_t stride, count;
};

Floats make_floats(Memory& memory, Numbers& numbers, int64_t rows, int64_t stride) {
  const Floats floats = {memory.take<float>(rows * stride), stride, rows * stride};
  for (int64_t i = 0; i < floats.count; ++i) floats.data[i] = numbers.between_ones();
  return floats;
}

RoundedJob make_job(const Case& of, Memory& memory, Numbers& numbers, const Floats& x, const Floats& y) {
  const Weights w = make_weights(of, memory, numbers);
  int32_t* rows = nullptr;
  if (of.has_rows) {
    rows = memory.take<int32_t>(of.m);
    for (int64_t i = 0; i < of.m; ++i) rows[i] = static_cast<int32_t>(2 * i + (i % 3 == 0 ? 1 : 0));
  }
  RoundedJob job = {};
  job.gemm = {.x = x.data, .x_stride = x.stride, .m = of.m, .n = of.n, .k = of.k, .depth = w.depth, .panels = w.bytes};
  job.gemm.y = y.data;
  job.gemm.y_stride = y.stride;
  if (of.m % 2 == 1) {
    job.gemm.bias = make_floats(memory, numbers, 1, of.n).data;
    job.gemm.activation = Activation::kGelu;
    job.gemm.residual = y.data;
    job.gemm.residual_stride = y.stride;
  }
  job.scales = w.scales;
  job.weight_sums = w.sums;
  job.is_wide = of.is_wide;
  job.rows = rows;
  return job;
}

// in_parts: every stripe of rows by itself, in two runs of panels.
void run(const RoundedGemmKernels& kernels, RoundedJob& job, Memory& memory, bool in_parts) {
  const int64_t m = job.gemm.m, rounded = m * (job.is_wide ? 2 : 1);
  const int64_t panels = (job.gemm.n + kPanelWidth - 1) / kPanelWidth;
  auto* const q = memory.take<unsigned char>(rounded * job.gemm.depth * kernels.q_bytes);
  auto* const scales = memory.take<float>(m);
  auto* const zeros = memory.take<int32_t>(m);
  job.num_tiles = (rounded + kernels.tile_rows - 1) / kernels.tile_rows;
  job.tile_step = job.is_wide ? 1 : kernels.tile_step;
  job.q = q;
  job.row_scales = scales;
  job.row_zeros = zeros;
  kernels.quantize(job, 0, m / 2, q, scales, zeros);
  kernels.quantize(job, m / 2, m, q, scales, zeros);
  if (!in_parts) return kernels.panels(job, 0, job.num_tiles, 0, panels);
  for (int64_t i = 0; i < job.num_tiles; ++i) {
    kernels.panels(job, i, i + 1, panels / 2, panels);
    kernels.panels(job, i, i + 1, 0, panels / 2);
  }
}

void print_some(const Floats& y, int64_t rows, int64_t n) {
  constexpr int64_t kSome = 24;
  const int64_t count = rows * n, step = count < kSome ? 1 : count / kSome;
  for (int64_t i = 0; i < count; i += step) {
    put(" ", Hex{bits_of(y.data[i / n * y.stride + i % n]), 8});
  }
}

void multiply(const Case& of, bool in_parts) {
  Memory memory;
  Numbers numbers(static_cast<uint64_t>(of.m * 1000003 + of.n * 1009 + of.k));
  const int64_t rows = of.has_rows ? 2 * of.m : of.m;
  const Floats x = make_floats(memory, numbers, rows, of.k + 5), y = make_floats(memory, numbers, rows, of.n + 3);
  for (int64_t r = 0; r < rows; ++r) {  // an outlier each
    x.data[r * x.stride + numbers.integer(0, static_cast<int>(of.k) - 1)] *= 30;
  }
  if (of.extreme != 0) {
    for (int64_t i = 0; i < x.count; ++i) x.data[i] = 2;
  }
  RoundedJob job = make_job(of, memory, numbers, x, y);
  const TileGemmKernels& kernels = in_question::kTileGemmKernels;
  run(of.kind == Kind::kInt8 ? kernels.int8 : kernels.bfloat16, job, memory, in_parts);
  put(of.kind == Kind::kInt8 ? "int8" : "bfloat16", of.is_wide ? " wide" : "", of.extreme != 0 ? " extremes" : "");
  if (of.extreme < 0) put(" below 0");
  if (of.is_positive) put(" above 0");
  put(" m ", of.m, of.has_rows ? " chosen" : "", " n ", of.n, " k ", of.k, in_parts ? " in parts" : "", " #",
      Hex{checksum(y.data, y.count * static_cast<int64_t>(sizeof(float)))});
  if (of.kind == Kind::kBFloat16) print_some(y, rows, of.n);
  put("\n");
}

}  // namespace

void multiply_layers() {
  constexpr int64_t kRows[] = {1,  2,  3,  7,  8,  9,  15, 16, 17, 18, 24, 31, 32,  33,
                               34, 47, 48, 49, 63, 64, 65, 66, 80, 95, 96, 97, 128, 130};
  for (const int64_t n : {1, 33, 70, 129}) {
    for (const int64_t k : {1, 64, 65, 130, 330}) {
      for (const int64_t m : kRows) {
        for (const bool is_wide : {false, true}) {
          for (const bool has_rows : {false, true})
            multiply({Kind::kInt8, m, n, k, is_wide, has_rows}, (m + n) % 4 == 0);
        }
        multiply({Kind::kBFloat16, m, n, k}, (m + n) % 4 == 0);
      }
    }
  }
  for (const int64_t m : kRows) {
    for (const int64_t n : {33, 129}) {
      for (const bool is_wide : {false, true}) multiply({Kind::kInt8, m, n, 330, is_wide, false, 0, true}, false);
    }
  }
  for (const int64_t m : {1, 17, 33}) {
    for (const float extreme : {1.0f, -1.0f}) multiply({Kind::kInt8, m, 33, 4096, false, false, extreme}, false);
  }
}

}  // namespace transept
