#include "ops/gemm.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/checked_math.h"
#include "ops/cpu_device.h"
#include "ops/cpu_ops.h"
#include "ops/select_kernels.h"

namespace transept {
namespace {

// Below this the threads are not asked: waking them costs more than the work.
constexpr double kSerialFlop = 20000;
constexpr int64_t kSerialQuantized = 8192;  // inputs
constexpr int64_t kFewerLeavesBelow = 512;  // inputs

// Inputs that no two leaves divide, of k.
int64_t leaf_granule(int64_t k, const PackedFormat& format) {
  if (format.inputs == InputRounding::kGroups) return NibblePanels::of(format.weights, k).group;
  if (format.weights.is_nibbles()) return kNibbleInputs;
  if (format.inputs == InputRounding::kBFloat16) return kBFloat16Depth;
  return format.weights == kBFloat16Format ? 2 : 1;
}

bool has_leaves(int64_t k, const PackedFormat& format, int32_t leaves) {
  return leaves == 1 || (leaves > 0 && leaves <= kMostLeaves && (leaves & (leaves - 1)) == 0 &&
                         k % (leaves * leaf_granule(k, format)) == 0);
}

void check_shapes(const GemmInput& input, const PackedMatrix& w, const Epilogue& epilogue, const TensorView& y) {
  const TensorView& x = input.x;
  CHECK(has_leaves(w.k(), w.format(), input.leaves), input.leaves, " leaves of ", w.k(), " inputs");
  CHECK(input.ranks == nullptr || (w.format().weights == kInt8Format && input.statistics != nullptr));
  CHECK(x.rank == 2 && y.rank == 2 && x.dtype == DType::kFloat32 && y.dtype == DType::kFloat32);
  CHECK(x.dim(1) == w.k() && y.dim(1) == w.n() && y.dim(0) == x.dim(0), "x [", x.dim(0), ", ", x.dim(1), "], w [",
        w.n(), ", ", w.k(), "], y [", y.dim(0), ", ", y.dim(1), "]");
  CHECK((x.stride[1] == 1 || x.dim(1) <= 1) && (y.stride[1] == 1 || y.dim(1) <= 1));
  const TensorView& residual = epilogue.residual;
  CHECK(residual.raw == nullptr ||
        (residual.rank == 2 && residual.dtype == DType::kFloat32 && residual.dim(0) == y.dim(0) &&
         residual.dim(1) == y.dim(1) && (residual.stride[1] == 1 || residual.dim(1) <= 1)));
}

// Few rows: tasks are runs of panels. Calls work(panel_begin, panel_end).
template <class Work>
void for_runs_of_panels(Context& context, int64_t num_panels, bool serial, Work&& work) {
  const int64_t threads = cpu_of(context).threads().num_threads();
  // Several tasks a thread even out what disturbs one of them, but not so many that a run is less than a few panels.
  const int64_t rounds = std::clamp<int64_t>(num_panels / (threads * 8), 1, 4);
  const int64_t tasks = serial ? 1 : std::min(num_panels, threads * rounds);
  cpu_of(context).threads().parallel_for(tasks, [&](int64_t task, int) {
    work(even_split(num_panels, tasks, task), even_split(num_panels, tasks, task + 1));
  });
}

// How many rows are divided: tiles of rows, blocks of tiles, and runs of panels.
struct Division {
  int64_t num_tiles = 0;
  int64_t tiles_a_block = 0;  // at most
  int64_t num_blocks = 0;
  int64_t num_runs = 0;
};

Division divide(int64_t num_tiles, int64_t tile_bytes, int64_t block_bytes, int64_t num_panels, int64_t threads) {
  Division d;
  d.num_tiles = num_tiles;
  d.tiles_a_block = std::min(num_tiles, std::max<int64_t>(2, block_bytes / std::max<int64_t>(tile_bytes, 1)));
  d.num_blocks = ceil_div(num_tiles, d.tiles_a_block);
  // As many for each thread: then rows stay with the thread that made them.
  if (d.num_blocks > 1) d.num_blocks = std::min(num_tiles, round_up(d.num_blocks, threads));
  // Enough tasks that the threads end together.
  constexpr int64_t kTasksAThread = 6;
  d.num_runs =
      std::clamp<int64_t>(ceil_div(threads * kTasksAThread, d.num_blocks), 1, std::max<int64_t>(num_panels, 1));
  return d;
}

// Calls run(block, run, thread) for each of them.
template <class Run>
void for_blocks_and_runs(Context& context, const Division& d, bool serial, Run&& run) {
  const int64_t tasks = d.num_blocks * d.num_runs;
  if (serial) {
    for (int64_t task = 0; task < tasks; ++task) run(task / d.num_runs, task % d.num_runs, 0);
  } else {
    cpu_of(context).threads().parallel_for(
        tasks, [&](int64_t task, int thread) { run(task / d.num_runs, task % d.num_runs, thread); });
  }
}

void run_many_rows(Context& context, const OpKernels& kernels, const FloatGemmKernels& of, const GemmJob& job,
                   int64_t num_panels, bool serial) {
  const int64_t threads = serial ? 1 : cpu_of(context).threads().num_threads();
  const int64_t tile_floats = kernels.tile_rows * job.k;
  const Division d = divide(ceil_div(job.m, kernels.tile_rows), tile_floats * static_cast<int64_t>(sizeof(float)),
                            kVectorBlockBytes, num_panels, threads);
  const int64_t scratch_floats = d.tiles_a_block * tile_floats;
  // Each thread packs the block that it works on, and keeps it for the next task of the same block.
  const Arena::Scope scope(context.arena);
  const std::span<float> scratch =
      context.arena.allocate_span<float>(cpu_of(context).threads().num_threads() * scratch_floats);
  const std::span<int64_t> packed_block = context.arena.allocate_span<int64_t>(cpu_of(context).threads().num_threads());
  if (context.dry_run) return;
  std::fill(packed_block.begin(), packed_block.end(), -1);
  for_blocks_and_runs(context, d, serial, [&](int64_t block, int64_t run, int thread) {
    const int64_t tile_begin = even_split(d.num_tiles, d.num_blocks, block);
    const int64_t tile_end = even_split(d.num_tiles, d.num_blocks, block + 1);
    float* packed = scratch.data() + thread * scratch_floats;
    int64_t& have = packed_block[static_cast<size_t>(thread)];
    if (have != block) {
      kernels.gemm_pack(job, d.num_tiles, tile_begin, tile_end, packed);
      have = block;
    }
    of.tiles(job, d.num_tiles, tile_begin, tile_end, packed, even_split(num_panels, d.num_runs, run),
             even_split(num_panels, d.num_runs, run + 1));
  });
}

void run_float(Context& context, const OpKernels& kernels, const FloatGemmKernels& of, const GemmJob& job,
               int64_t num_panels, bool serial) {
  if (job.m > kernels.few_rows) {
    run_many_rows(context, kernels, of, job, num_panels, serial);
  } else if (!context.dry_run) {
    for_runs_of_panels(context, num_panels, serial, [&](int64_t begin, int64_t end) { of.few_rows(job, begin, end); });
  }
}

// Wide rows are rounded one by one, so their tiles may begin anywhere.
void divide_into_tiles(const RoundedGemmKernels& kernels, RoundedJob& job) {
  job.num_tiles = ceil_div(job.gemm.m * rounded_share(job.is_wide), kernels.tile_rows);
  job.tile_step = job.is_wide ? 1 : kernels.tile_step;
}

// Which rows of x a product takes (RoundedJob::rows), whether each is rounded twice, what is known of all of them, and
// who has the other inputs.
struct ChosenRows {
  const int32_t* rows = nullptr;
  bool is_wide = false;
  const RowStatistics* given = nullptr;
  IntegerSums* ranks = nullptr;
};

// The rows of x as int8 or bfloat16, in the step's memory.
class RoundedRows final {
 public:
  // gemm.m: of the chosen rows.
  RoundedRows(Context& context, const RoundedGemmKernels& kernels, const GemmJob& gemm, const PackedMatrix& w,
              const ChosenRows& chosen)
      : scope_(context.arena),
        q_(context.arena.allocate_span<std::byte>(gemm.m * rounded_share(chosen.is_wide) * w.depth() *
                                                  kernels.q_bytes)),
        scales_(context.arena.allocate_span<float>(w.scales() == nullptr ? 0 : gemm.m)),
        zeros_(context.arena.allocate_span<int32_t>(w.scales() == nullptr ? 0 : gemm.m)),
        job_{.gemm = gemm,
             .q = q_.data(),
             .row_scales = scales_.data(),
             .row_zeros = zeros_.data(),
             .scales = w.scales(),
             .weight_sums = w.sums(),
             .is_wide = chosen.is_wide,
             .rows = chosen.rows,
             .given = chosen.given} {
    if (context.dry_run) return;
    divide_into_tiles(kernels, job_);
    const auto round_rows = [&](int64_t begin, int64_t end) {
      kernels.quantize(job_, begin, end, q_.data(), scales_.data(), zeros_.data());
    };
    if (gemm.m * w.depth() < kSerialQuantized) {
      round_rows(0, gemm.m);
      return;
    }
    // Two parts of a tile's rows each, so that threads end together.
    const int64_t parts = std::min(2 * job_.num_tiles, ceil_div(gemm.m, job_.tile_step));
    cpu_of(context).threads().parallel_for(parts, [&](int64_t i, int) {
      round_rows(step_split(gemm.m, job_.tile_step, parts, i), step_split(gemm.m, job_.tile_step, parts, i + 1));
    });
  }

  const RoundedJob& job() const { return job_; }

 private:
  Arena::Scope scope_;
  std::span<std::byte> q_;
  std::span<float> scales_;
  std::span<int32_t> zeros_;
  RoundedJob job_;
};

// All rows and panels.
void run_panels(Context& context, const RoundedGemmKernels& kernels, const RoundedJob& job, const PackedMatrix& w,
                bool serial) {
  const int64_t tiles = job.num_tiles;
  if (tiles == 1) {
    return for_runs_of_panels(context, w.num_panels(), serial,
                              [&](int64_t begin, int64_t end) { kernels.panels(job, 0, 1, begin, end); });
  }
  const Division d = divide(tiles, kernels.tile_rows * w.depth() * kernels.q_bytes, kernels.block_bytes, w.num_panels(),
                            serial ? 1 : cpu_of(context).threads().num_threads());
  for_blocks_and_runs(context, d, serial, [&](int64_t block, int64_t run, int) {
    kernels.panels(job, even_split(tiles, d.num_blocks, block), even_split(tiles, d.num_blocks, block + 1),
                   even_split(w.num_panels(), d.num_runs, run), even_split(w.num_panels(), d.num_runs, run + 1));
  });
}

// Calls work(row_begin, row_end) for all rows, on the threads if there is enough to do.
template <class Work>
void for_parts_of_rows(Context& context, const GemmJob& gemm, Work&& work) {
  const int64_t m = gemm.m;
  if (m * gemm.k < kSerialQuantized) return work(0, m);
  const int64_t parts = std::min<int64_t>(m, 4 * cpu_of(context).threads().num_threads());
  cpu_of(context).threads().parallel_for(
      parts, [&](int64_t i, int) { work(even_split(m, parts, i), even_split(m, parts, i + 1)); });
}

void run_rounded(Context& context, const RoundedGemmKernels& kernels, const GemmJob& gemm, const PackedMatrix& w,
                 const ChosenRows& chosen, bool serial) {
  const RoundedRows x(context, kernels, gemm, w, chosen);
  if (chosen.ranks == nullptr) {
    if (!context.dry_run) run_panels(context, kernels, x.job(), w, serial);
    return;
  }
  RoundedJob job = x.job();
  job.integer_stride = w.num_panels() * kPanelColumns;
  const int64_t count = gemm.m * rounded_share(chosen.is_wide) * job.integer_stride;
  const std::span<int32_t> whole = context.arena.allocate_span<int32_t>(count);
  const std::span<int32_t> zeros = context.arena.allocate_span<int32_t>(gemm.m);
  if (context.dry_run) return;
  job.integers = chosen.ranks->part(count).data();
  run_panels(context, kernels, job, w, serial);
  chosen.ranks->add_parts(whole);
  // The sums are those of the inputs as they are: every rank has taken its part of the zeros' share away.
  std::fill(zeros.begin(), zeros.end(), 0);
  job.row_zeros = zeros.data();
  job.integers = whole.data();
  for_parts_of_rows(context, gemm, [&](int64_t begin, int64_t end) { kernels.finish(job, begin, end); });
}

// Of so many rounded rows. Null: x is multiplied as it is.
const RoundedGemmKernels* rounded_kernels(const OpKernels& kernels, const PackedMatrix& w, int64_t num_rounded) {
  const TileGemmKernels* tiles = kernels.tiles;
  if (w.format().inputs == InputRounding::kGroups) return &kernels.gemm_nibble_groups;
  if (w.format().weights == kInt8Format) {
    const bool few = tiles == nullptr || num_rounded <= tiles->int8_vector_rows;
    return few ? &kernels.gemm_int8 : &tiles->int8;
  }
  if (w.format().inputs != InputRounding::kBFloat16) return nullptr;
  return tiles != nullptr ? &tiles->bfloat16 : kernels.gemm_rounded_bfloat16;
}

// Rows that one rounding would cost much take two. Each row is judged by itself, so that what runs beside it does not
// show; each kind is a product of its own, so the weights are read twice where both are there.
void run_by_outliers(Context& context, const OpKernels& kernels, GemmJob gemm, const PackedMatrix& w,
                     const GemmInput& input, bool serial) {
  const RowStatistics* given = input.statistics;
  const Arena::Scope scope(context.arena);
  const int64_t m = gemm.m;
  const std::span<bool> is_rough = context.arena.allocate_span<bool>(m);
  const std::span<int32_t> rows = context.arena.allocate_span<int32_t>(m);
  const auto run = [&](std::span<const int32_t> chosen, bool is_wide) {
    gemm.m = std::ssize(chosen);
    if (gemm.m == 0) return;
    const RoundedGemmKernels& rounded = *rounded_kernels(kernels, w, gemm.m * rounded_share(is_wide));
    run_rounded(context, rounded, gemm, w, {gemm.m == m ? nullptr : chosen.data(), is_wide, given, input.ranks},
                serial);
  };
  if (context.dry_run) return run(rows, true);  // what takes the most memory
  const auto find = [&](int64_t begin, int64_t end) { kernels.find_rough(gemm, given, begin, end, is_rough.data()); };
  serial ? find(0, m) : for_parts_of_rows(context, gemm, find);
  const auto num_rough = static_cast<size_t>(std::count(is_rough.begin(), is_rough.end(), true));
  const size_t num_fine = rows.size() - num_rough;
  size_t fine = 0, rough = num_fine;
  for (size_t row = 0; row < rows.size(); ++row) rows[is_rough[row] ? rough++ : fine++] = static_cast<int32_t>(row);
  run(rows.first(num_fine), false);
  run(rows.last(num_rough), true);
}

// Of weights that are numbers.
const FloatGemmKernels& float_kernels(const OpKernels& kernels, const PackedMatrix& w) {
  const WeightFormat& weights = w.format().weights;
  if (weights.is_nibbles()) return kernels.gemm_nibbles;
  return weights == kBFloat16Format  ? kernels.gemm_bfloat16
         : weights == kFloat16Format ? kernels.gemm_float16
                                     : kernels.gemm_float32;
}

NibbleView view_of_nibbles(const PackedMatrix& w) {
  if (!w.is_nibbles()) return {};
  const NibblePanels& panels = w.nibbles();
  const NibbleMeanings meanings = w.nibble_meanings();
  return {.table = meanings.table.data(),
          .input_groups = meanings.input_groups.empty() ? nullptr : meanings.input_groups.data(),
          .group = panels.group,
          .panel_bytes = panels.panel_bytes(),
          .scales_place = panels.scales_place(),
          .zeros_place = panels.zeros_place(),
          .has_zero = panels.has_zero};
}

// Without y.
GemmJob make_job(const Context& context, const GemmInput& input, const PackedMatrix& w, const Epilogue& epilogue) {
  const TensorView& x = input.x;
  const bool dry = context.dry_run;
  const bool has_residual = epilogue.residual.raw != nullptr;
  if (!dry && context.counters != nullptr && x.dim(0) > 0 && w.n() > 0) ++context.counters->num_matmuls;
  return {.x = dry ? nullptr : x.f32(),
          .x_stride = x.stride[0],
          .m = x.dim(0),
          .n = w.n(),
          .k = w.k(),
          .depth = w.depth(),
          .leaf_k = w.k() / input.leaves,
          .panels = w.panels(),
          .bias = epilogue.bias,
          .activation = epilogue.activation,
          .residual = has_residual && !dry ? epilogue.residual.f32() : nullptr,
          .residual_stride = has_residual ? epilogue.residual.stride[0] : 0,
          .y = nullptr,
          .y_stride = 0,
          .nibbles = view_of_nibbles(w)};
}

// The job's columns of one piece, as a product of its own.
GemmJob piece_of(const GemmJob& whole, const PackedMatrix& w, const ColumnPiece& piece) {
  GemmJob job = whole;
  job.n = piece.end - piece.begin;
  job.panels = w.panels() + piece.begin / kPanelColumns * w.panel_bytes();
  if (whole.bias != nullptr) job.bias = whole.bias + piece.begin;
  job.y = piece.y.f32();
  job.y_stride = piece.y.stride[0];
  return job;
}

// What gemm_parted() keeps of its products, in the step's memory.
struct PartedScratch {
  std::span<RoundedJob> jobs;     // one each; only `gemm` counts where x is multiplied as it is
  std::span<int64_t> first_task;  // [products + 1]; a task is a part
  std::span<std::byte> q;         // rounded rows, one product's behind the other's
  std::span<float> scales;
  std::span<int32_t> zeros;
};

// Rows are rounded where any number of them would be.
bool rounds_rows(const OpKernels& kernels, const PackedMatrix& w) { return rounded_kernels(kernels, w, 1) != nullptr; }

PartedScratch make_parted_scratch(Context& context, const OpKernels& kernels, const PackedMatrix& like,
                                  std::span<const PartedGemm> products) {
  int64_t rows = 0;
  for (const PartedGemm& product : products) rows += product.x.dim(0);
  const bool rounds = rounds_rows(kernels, like), is_int8 = like.format().weights == kInt8Format;
  constexpr int64_t kMostInputBytes = 2;  // of one rounded input, by any kernel
  return {.jobs = context.arena.allocate_span<RoundedJob>(std::ssize(products)),
          .first_task = context.arena.allocate_span<int64_t>(std::ssize(products) + 1),
          .q = context.arena.allocate_span<std::byte>(rounds ? rows * like.depth() * kMostInputBytes : 0),
          .scales = context.arena.allocate_span<float>(is_int8 ? rows : 0),
          .zeros = context.arena.allocate_span<int32_t>(is_int8 ? rows : 0)};
}

// Columns of a product that part `i` of its matrix gives, as a product of its own.
GemmJob job_of_part(const GemmJob& whole, const PartedGemm& product, int64_t i) {
  const GemmPart& part = product.parts[static_cast<size_t>(i)];
  GemmJob job = whole;
  job.n = std::min(kPartColumns, product.y.dim(1) - i * kPartColumns);
  job.panels = part.w->panels();
  job.bias = part.bias;
  job.y = product.y.f32() + i * kPartColumns;
  return job;
}

void run_part(const OpKernels& kernels, const PackedMatrix& like, const RoundedJob& of, const PartedGemm& product,
              int64_t i) {
  GemmJob job = job_of_part(of.gemm, product, i);
  const int64_t num_panels = ceil_div(job.n, kPanelColumns);
  if (const RoundedGemmKernels* rounded = rounded_kernels(kernels, like, job.m)) {
    RoundedJob part = of;
    part.gemm = job;
    part.scales = product.parts[static_cast<size_t>(i)].w->scales();
    part.weight_sums = product.parts[static_cast<size_t>(i)].w->sums();
    return rounded->panels(part, 0, part.num_tiles, 0, num_panels);
  }
  const FloatGemmKernels& floats = float_kernels(kernels, like);
  // A part stays in the second-level cache for the rows after the first few.
  for (int64_t left = job.m; left > 0; left -= job.m) {
    job.m = std::min<int64_t>(left, kernels.few_rows);
    floats.few_rows(job, 0, num_panels);
    job.x += job.m * job.x_stride;
    job.y += job.m * job.y_stride;
  }
}

void round_parted_rows(Context& context, const OpKernels& kernels, const PackedMatrix& like,
                       const PartedScratch& scratch, int64_t num_rows) {
  if (!rounds_rows(kernels, like)) return;
  const auto round_rows = [&](int64_t i, int) {
    const RoundedJob& job = scratch.jobs[static_cast<size_t>(i)];
    const RoundedGemmKernels& rounded = *rounded_kernels(kernels, like, job.gemm.m);
    rounded.quantize(job, 0, job.gemm.m, const_cast<void*>(job.q), const_cast<float*>(job.row_scales),
                     const_cast<int32_t*>(job.row_zeros));
  };
  if (num_rows * like.depth() < kSerialQuantized) {
    for (int64_t i = 0; i < std::ssize(scratch.jobs); ++i) round_rows(i, 0);
  } else {
    cpu_of(context).threads().parallel_for(std::ssize(scratch.jobs), round_rows);
  }
}

// Works out what each product's tasks are, and where its rounded rows go; returns how many rows there are.
int64_t prepare_parted(Context& context, const OpKernels& kernels, const PackedMatrix& like,
                       std::span<const PartedGemm> products, const PartedScratch& scratch) {
  int64_t row = 0, num_tasks = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    const PartedGemm& product = products[i];
    CHECK(product.x.dim(1) == like.k() && product.x.dim(0) == product.y.dim(0) && product.y.dim(1) > 0 &&
          ceil_div(product.y.dim(1), kPartColumns) == std::ssize(product.parts));
    RoundedJob& job = scratch.jobs[i];
    job = {.gemm = make_job(context, product.x, like, {})};
    job.gemm.y_stride = product.y.stride[0];
    scratch.first_task[i] = num_tasks;
    num_tasks += std::ssize(product.parts);
    if (const RoundedGemmKernels* rounded = rounded_kernels(kernels, like, job.gemm.m)) {
      divide_into_tiles(*rounded, job);
      job.q = scratch.q.data() + row * like.depth() * rounded->q_bytes;
      job.row_scales = scratch.scales.empty() ? nullptr : scratch.scales.data() + row;
      job.row_zeros = scratch.zeros.empty() ? nullptr : scratch.zeros.data() + row;
    }
    row += job.gemm.m;
  }
  scratch.first_task[products.size()] = num_tasks;
  return row;
}

}  // namespace

void gemm_parted(Context& context, const PackedMatrix& like, std::span<const PartedGemm> products) {
  gemm_parted_with(op_kernels(cpu_of(context).isa()), context, like, products);
}

void gemm_parted_with(const OpKernels& kernels, Context& context, const PackedMatrix& like,
                      std::span<const PartedGemm> products) {
  CHECK(!like.format().has_wide_inputs());
  const Arena::Scope scope(context.arena);
  const PartedScratch scratch = make_parted_scratch(context, kernels, like, products);
  if (context.dry_run || products.empty()) return;
  const int64_t num_rows = prepare_parted(context, kernels, like, products, scratch);
  round_parted_rows(context, kernels, like, scratch, num_rows);
  cpu_of(context).threads().parallel_for(scratch.first_task.back(), [&](int64_t task, int) {
    const auto after = std::upper_bound(scratch.first_task.begin(), scratch.first_task.end(), task);
    const auto i = static_cast<size_t>(after - scratch.first_task.begin() - 1);
    run_part(kernels, like, scratch.jobs[i], products[i], task - scratch.first_task[i]);
  });
}

int32_t num_leaves(int64_t k, const PackedFormat& format) {
  // Each leaf costs a tile the storing and adding of its sums, which shows where leaves are short.
  int32_t leaves = k < kFewerLeavesBelow ? kMostLeaves / 2 : kMostLeaves;
  while (!has_leaves(k, format, leaves)) leaves /= 2;
  return leaves;
}

bool multiplies_in_bfloat16(const PackedFormat& format, Isa isa) {
  const OpKernels& kernels = op_kernels(isa);
  return format.inputs == InputRounding::kBFloat16 &&
         (kernels.tiles != nullptr || kernels.gemm_rounded_bfloat16 != nullptr);
}

void cpu_ops::gemm(Context& context, const GemmInput& input, const PackedMatrix& w, const Epilogue& epilogue,
                   const TensorView& y) {
  gemm_with(op_kernels(cpu_of(context).isa()), context, input, w, epilogue, y);
}

void row_statistics(Context& context, const TensorView& x, std::span<RowStatistics> statistics, int32_t leaves) {
  CHECK(x.rank == 2 && x.dim(0) == std::ssize(statistics) && (x.stride[1] == 1 || x.dim(1) <= 1));
  CHECK(has_leaves(x.dim(1), {}, leaves), leaves, " leaves of ", x.dim(1), " inputs");
  if (context.dry_run) return;
  const GemmJob job = {
      .x = x.f32(), .x_stride = x.stride[0], .m = x.dim(0), .k = x.dim(1), .leaf_k = x.dim(1) / leaves};
  for_parts_of_rows(context, job, [&](int64_t begin, int64_t end) {
    op_kernels(cpu_of(context).isa()).find_statistics(job, begin, end, statistics.data());
  });
}

void gemm_with(const OpKernels& kernels, Context& context, const GemmInput& input, const PackedMatrix& w,
               const Epilogue& epilogue, const TensorView& y) {
  check_shapes(input, w, epilogue, y);
  GemmJob job = make_job(context, input, w, epilogue);
  if (job.m == 0 || job.n == 0) return;
  if (!context.dry_run) job.y = y.f32();
  job.y_stride = y.stride[0];
  const bool serial =
      2.0 * static_cast<double>(job.m) * static_cast<double>(job.n) * static_cast<double>(job.k) < kSerialFlop;
  const bool is_wide = w.format().inputs == InputRounding::kWide;
  if (w.format().inputs == InputRounding::kOutliers) {
    run_by_outliers(context, kernels, job, w, input, serial);
  } else if (const RoundedGemmKernels* rounded = rounded_kernels(kernels, w, job.m * rounded_share(is_wide))) {
    run_rounded(context, *rounded, job, w, {.is_wide = is_wide, .given = input.statistics, .ranks = input.ranks},
                serial);
  } else {
    run_float(context, kernels, float_kernels(kernels, w), job, w.num_panels(), serial);
  }
}

void gemm_by_columns(Context& context, const TensorView& x, const PackedMatrix& w, const float* bias,
                     const TensorView& y, FunctionRef<void(const ColumnPiece&)> then) {
  gemm_by_columns_with(op_kernels(cpu_of(context).isa()), context, x, w, bias, y, then);
}

void gemm_by_columns_with(const OpKernels& kernels, Context& context, const TensorView& x, const PackedMatrix& w,
                          const float* bias, const TensorView& y, FunctionRef<void(const ColumnPiece&)> then) {
  const int64_t m = x.dim(0);
  const bool is_whole = y.dim(0) == m && y.dim(1) == w.n();
  CHECK(!w.format().has_wide_inputs());
  CHECK(is_whole || (y.dim(0) == m * cpu_of(context).threads().num_threads() && y.dim(1) == kPieceColumns), "y [",
        y.dim(0), ", ", y.dim(1), "] of ", m, " rows and ", w.n(), " columns");
  const GemmJob job = make_job(context, x, w, {.bias = bias});
  if (job.m == 0 || job.n == 0) return;
  const auto in_pieces = [&](auto&& compute) {
    cpu_of(context).threads().parallel_for(ceil_div(job.n, kPieceColumns), [&](int64_t i, int thread) {
      const int64_t begin = i * kPieceColumns, end = std::min(begin + kPieceColumns, job.n);
      const TensorView rows = is_whole ? y : y.rows(thread * m, (thread + 1) * m);
      const ColumnPiece piece{begin, end, rows.columns(is_whole ? begin : 0, is_whole ? end : end - begin), thread};
      compute(piece_of(job, w, piece), begin, ceil_div(end - begin, kPanelColumns));
      then(piece);
    });
  };
  if (const RoundedGemmKernels* rounded = rounded_kernels(kernels, w, job.m)) {
    const RoundedRows rows(context, *rounded, job, w, {});
    if (context.dry_run) return;
    return in_pieces([&](const GemmJob& part, int64_t column, int64_t num_panels) {
      RoundedJob of = rows.job();
      of.gemm = part;
      if (of.scales != nullptr) of.scales += column, of.weight_sums += column;
      rounded->panels(of, 0, of.num_tiles, 0, num_panels);
    });
  }
  const FloatGemmKernels& of = float_kernels(kernels, w);
  if (job.m <= kernels.few_rows) {
    if (context.dry_run) return;
    return in_pieces([&](const GemmJob& part, int64_t, int64_t num_panels) { of.few_rows(part, 0, num_panels); });
  }
  const Arena::Scope scope(context.arena);
  const int64_t num_tiles = ceil_div(job.m, kernels.tile_rows);
  const std::span<float> packed = context.arena.allocate_span<float>(num_tiles * kernels.tile_rows * job.k);
  if (context.dry_run) return;
  kernels.gemm_pack(job, num_tiles, 0, num_tiles, packed.data());
  in_pieces([&](const GemmJob& part, int64_t, int64_t num_panels) {
    of.tiles(part, num_tiles, 0, num_tiles, packed.data(), 0, num_panels);
  });
}

}  // namespace transept
