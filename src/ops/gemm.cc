#include "ops/gemm.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "ops/select_kernels.h"

namespace transept {
namespace {

static_assert(kPanelColumns == 32);

// Below this the threads are not asked: waking them costs more than the work.
constexpr double kSerialFlop = 20000;
// A task's packed rows of x stay in the second-level cache beside two panels of weights: this one and the next, which is
// fetched meanwhile. Measured: 160 to 320 KiB are alike, 640 KiB cost 5 %.
constexpr int64_t kBlockBytes = int64_t{256} << 10;

size_t packed_bytes(int64_t n, int64_t k) {
  CHECK(n >= 0 && k >= 0);
  const std::optional<int64_t> floats = checked_mul(round_up(n, kPanelColumns), k);
  CHECK(floats.has_value() && *floats <= INT64_MAX / 4, "weights of ", n, " x ", k);
  return static_cast<size_t>(*floats) * sizeof(float);
}

void check_shapes(const TensorView& x, const PackedMatrix& w, const Epilogue& epilogue, const TensorView& y) {
  CHECK(x.rank == 2 && y.rank == 2 && x.dtype == DType::kFloat32 && y.dtype == DType::kFloat32);
  CHECK(x.dim(1) == w.k() && y.dim(1) == w.n() && y.dim(0) == x.dim(0), "x [", x.dim(0), ", ", x.dim(1), "], w [",
        w.n(), ", ", w.k(), "], y [", y.dim(0), ", ", y.dim(1), "]");
  CHECK((x.stride[1] == 1 || x.dim(1) <= 1) && (y.stride[1] == 1 || y.dim(1) <= 1));
  const TensorView& residual = epilogue.residual;
  CHECK(residual.raw == nullptr ||
        (residual.rank == 2 && residual.dtype == DType::kFloat32 && residual.dim(0) == y.dim(0) &&
         residual.dim(1) == y.dim(1) && (residual.stride[1] == 1 || residual.dim(1) <= 1)));
}

// Few rows: tasks are runs of panels.
void run_few_rows(Context& context, const OpKernels& kernels, const GemmJob& job, int64_t num_panels, bool serial) {
  const int64_t threads = context.threads.num_threads();
  // Several tasks a thread even out what disturbs one of them, but not so many that a run is less than a few panels.
  const int64_t rounds = std::clamp<int64_t>(num_panels / (threads * 8), 1, 4);
  const int64_t tasks = serial ? 1 : std::min(num_panels, threads * rounds);
  context.threads.parallel_for(tasks, [&](int64_t task, int) {
    kernels.gemm_few_rows(job, even_split(num_panels, tasks, task), even_split(num_panels, tasks, task + 1));
  });
}

// How many rows are divided: tiles of up to tile_rows rows, blocks of tiles, and runs of panels.
struct Division {
  int64_t num_tiles = 0;
  int64_t num_blocks = 0;
  int64_t num_runs = 0;
  int64_t scratch_floats = 0;  // packed rows of one block
};

Division divide(const GemmJob& job, int64_t num_panels, int64_t tile_rows, int64_t threads) {
  Division d;
  d.num_tiles = ceil_div(job.m, tile_rows);
  const int64_t tile_bytes = tile_rows * std::max<int64_t>(job.k, 1) * static_cast<int64_t>(sizeof(float));
  const int64_t tiles_a_block = std::max<int64_t>(2, kBlockBytes / tile_bytes);
  d.num_blocks = ceil_div(d.num_tiles, tiles_a_block);
  // Enough tasks that the threads end together.
  constexpr int64_t kTasksAThread = 6;
  d.num_runs =
      std::clamp<int64_t>(ceil_div(threads * kTasksAThread, d.num_blocks), 1, std::max<int64_t>(num_panels, 1));
  d.scratch_floats = std::min(d.num_tiles, tiles_a_block) * tile_rows * job.k;
  return d;
}

void run_many_rows(Context& context, const OpKernels& kernels, const GemmJob& job, int64_t num_panels, bool serial) {
  const int64_t threads = serial ? 1 : context.threads.num_threads();
  const Division d = divide(job, num_panels, kernels.tile_rows, threads);
  // Each thread packs the block that it works on, and keeps it for the next task of the same block.
  const Arena::Scope scope(context.arena);
  const std::span<float> scratch = context.arena.allocate_span<float>(context.threads.num_threads() * d.scratch_floats);
  const std::span<int64_t> packed_block = context.arena.allocate_span<int64_t>(context.threads.num_threads());
  if (context.dry_run) return;
  std::fill(packed_block.begin(), packed_block.end(), -1);
  const auto run = [&](int64_t task, int thread) {
    const int64_t block = task / d.num_runs;
    const int64_t run_idx = task % d.num_runs;
    const int64_t tile_begin = even_split(d.num_tiles, d.num_blocks, block);
    const int64_t tile_end = even_split(d.num_tiles, d.num_blocks, block + 1);
    float* packed = scratch.data() + thread * d.scratch_floats;
    int64_t& have = packed_block[static_cast<size_t>(thread)];
    if (have != block) {
      kernels.gemm_pack(job, d.num_tiles, tile_begin, tile_end, packed);
      have = block;
    }
    kernels.gemm_tiles(job, d.num_tiles, tile_begin, tile_end, packed, even_split(num_panels, d.num_runs, run_idx),
                       even_split(num_panels, d.num_runs, run_idx + 1));
  };
  const int64_t tasks = d.num_blocks * d.num_runs;
  if (serial) {
    for (int64_t task = 0; task < tasks; ++task) run(task, 0);
  } else {
    context.threads.parallel_for(tasks, run);
  }
}

}  // namespace

PackedMatrix::PackedMatrix(int64_t n, int64_t k)
    : n_(n), k_(k), num_panels_(ceil_div(n, kPanelColumns)), data_(packed_bytes(n, k)) {}

void PackedMatrix::set_row(int64_t row, std::span<const float> weights) {
  CHECK(row >= 0 && row < n_ && static_cast<int64_t>(weights.size()) == k_);
  float* column =
      reinterpret_cast<float*>(data_.data()) + row / kPanelColumns * k_ * kPanelColumns + row % kPanelColumns;
  for (int64_t t = 0; t < k_; ++t) column[t * kPanelColumns] = weights[static_cast<size_t>(t)];
}

void PackedMatrix::get_row(int64_t row, float* out) const {
  CHECK(row >= 0 && row < n_);
  const float* column = panel(row / kPanelColumns) + row % kPanelColumns;
  for (int64_t t = 0; t < k_; ++t) out[t] = column[t * kPanelColumns];
}

void gemm(Context& context, const TensorView& x, const PackedMatrix& w, const Epilogue& epilogue, const TensorView& y) {
  check_shapes(x, w, epilogue, y);
  const int64_t m = x.dim(0);
  if (m == 0 || w.n() == 0) return;
  const OpKernels& kernels = op_kernels(context.isa);
  const bool dry = context.dry_run;
  const bool has_residual = epilogue.residual.raw != nullptr;
  const GemmJob job{.x = dry ? nullptr : x.f32(),
                    .x_stride = x.stride[0],
                    .m = m,
                    .n = w.n(),
                    .k = w.k(),
                    .panels = w.panel(0),
                    .bias = epilogue.bias,
                    .activation = epilogue.activation,
                    .residual = has_residual && !dry ? epilogue.residual.f32() : nullptr,
                    .residual_stride = has_residual ? epilogue.residual.stride[0] : 0,
                    .y = dry ? nullptr : y.f32(),
                    .y_stride = y.stride[0]};
  if (!dry && context.counters != nullptr) ++context.counters->num_matmuls;
  const double flop = 2.0 * static_cast<double>(m) * static_cast<double>(w.n()) * static_cast<double>(w.k());
  const bool serial = flop < kSerialFlop;
  if (m > kernels.few_rows) {
    run_many_rows(context, kernels, job, w.num_panels(), serial);
  } else if (!dry) {
    run_few_rows(context, kernels, job, w.num_panels(), serial);
  }
}

}  // namespace transept
