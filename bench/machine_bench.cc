// What this machine offers on all of its threads: bytes read a second of blocks that stay in the caches or do not, and
// operations a second from registers, by type. The peaks that bench/bounds.py holds measurements against.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/isa.h"
#include "base/thread_pool.h"
#include "machine_peaks.h"
#include "tensor/arena.h"

namespace transept {
namespace {

constexpr int64_t kTasksPerThread = 8;

double seconds_of(ThreadPool& threads, int64_t num_tasks, FunctionRef<void(int64_t, int)> task) {
  const auto begin = std::chrono::steady_clock::now();
  threads.parallel_for(num_tasks, task);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

constexpr int64_t kStreams = 4;

// Four streams with a prefetch ahead, as the kernels read: FACTS of these machines say that it is the fastest.
double sum_of(const float* data, int64_t count) {
  constexpr int64_t kStep = 16;
  std::array<std::array<float, kStep>, kStreams> sums{};
  const int64_t part = count / kStreams / kStep * kStep;
  for (int64_t i = 0; i < part; i += kStep) {
    for (size_t s = 0; s < kStreams; ++s) {
      const float* from = data + static_cast<int64_t>(s) * part + i;
      __builtin_prefetch(from + 256);
      for (size_t j = 0; j < kStep; ++j) sums[s][j] += from[j];
    }
  }
  double total = 0;
  for (const auto& stream : sums) total += *std::max_element(stream.begin(), stream.end());
  return total;
}

#if defined(__x86_64__)
// The same with whole lines: what is near would be bound by the number of loads else.
__attribute__((target("avx512f"))) double sum_of_avx512(const float* data, int64_t count) {
  constexpr int64_t kStep = 16;
  __m512i sums[kStreams];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  const int64_t part = count / kStreams / kStep * kStep;
  for (int64_t i = 0; i < part; i += kStep) {
    for (int64_t s = 0; s < kStreams; ++s) {
      const float* from = data + s * part + i;
      __builtin_prefetch(from + 256);
      sums[s] = _mm512_xor_si512(sums[s], _mm512_loadu_si512(from));
    }
  }
  alignas(64) int32_t lanes[16];
  _mm512_store_si512(lanes, _mm512_xor_si512(_mm512_xor_si512(sums[0], sums[1]), _mm512_xor_si512(sums[2], sums[3])));
  return lanes[0];
}
#endif

using Read = double (*)(const float*, int64_t);

Read read_of_this_machine() {
#if defined(__x86_64__)
  if (detect_isa() >= Isa::kAvx512) return sum_of_avx512;
#endif
  return sum_of;
}

// Blocks of up to kCached MiB stay where they are: each thread reads its own slice again and again. Above, slices are
// handed out, so that a thread that is held up is not waited for.
void BM_Read(benchmark::State& state) {
  constexpr int64_t kCached = 128;
  const int64_t mebibytes = state.range(0), bytes = mebibytes << 20;
  ThreadPool threads(num_available_cpus());
  PageBuffer pages(static_cast<size_t>(bytes));
  auto* data = reinterpret_cast<float*>(pages.data());
  const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
  std::fill_n(data, count, 1.0f);
  const Read read = read_of_this_machine();
  const bool is_cached = mebibytes <= kCached;
  const int64_t num_tasks = (is_cached ? 1 : kTasksPerThread) * threads.num_threads(), slice = count / num_tasks;
  const int64_t repeats = is_cached ? std::max<int64_t>(4, 256 / mebibytes) : 1;
  double best = 1e9;
  for ([[maybe_unused]] auto _ : state) {
    const double time = seconds_of(threads, num_tasks, [&](int64_t task, int) {
      for (int64_t i = 0; i < repeats; ++i) benchmark::DoNotOptimize(read(data + task * slice, slice));
    });
    best = std::min(best, time);
    state.SetIterationTime(time);
  }
  state.counters["GB/s"] = static_cast<double>(bytes * repeats) / best * 1e-9;
  state.counters["threads"] = threads.num_threads();
}
BENCHMARK(BM_Read)
    ->ArgName("MiB")
    ->Arg(1)
    ->Arg(4)
    ->Arg(8)
    ->Arg(16)
    ->Arg(24)
    ->Arg(32)
    ->Arg(48)
    ->Arg(64)
    ->Arg(128)
    ->Arg(256)
    ->Arg(1024)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(10);

#if defined(__x86_64__)

// Four sums of 16 x 16 from two rows and two columns of tiles, as a kernel has them.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

__attribute__((target("amx-tile"))) void load_tiles(const TileConfig& config, const uint8_t* zeros) {
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, zeros, 64);
  _tile_loadd(5, zeros, 64);
  _tile_loadd(6, zeros, 64);
  _tile_loadd(7, zeros, 64);
}

__attribute__((target("amx-tile,amx-int8"))) float multiply_amx_int8() {
  alignas(64) static const uint8_t zeros[1024] = {};
  load_tiles(TileConfig(), zeros);
  for (int64_t i = 0; i < kRounds; ++i) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
  return 0;
}

__attribute__((target("amx-tile,amx-bf16"))) float multiply_amx_bf16() {
  alignas(64) static const uint8_t zeros[1024] = {};
  load_tiles(TileConfig(), zeros);
  for (int64_t i = 0; i < kRounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 0;
}

struct Peak {
  const char* name;
  float (*multiply)();
  double operations;  // of one call
};

std::vector<Peak> peaks_of_this_machine() {
  const auto vectors = [](double lanes) { return 2.0 * kRounds * kChains * lanes; };
  const Isa isa = detect_isa();
  std::vector<Peak> peaks;
  if (isa >= Isa::kAvx2) {
    peaks.push_back(isa >= Isa::kAvx512 ? Peak{"float32", multiply_avx512, vectors(16)}
                                        : Peak{"float32", multiply_avx2, vectors(8)});
  }
  if (isa >= Isa::kAvx512Vnni) peaks.push_back({"int8", multiply_int8, vectors(64)});
  if (__builtin_cpu_supports("avx512bf16")) peaks.push_back({"bfloat16", multiply_bf16, vectors(32)});
  if (isa >= Isa::kAvx512Fp16) peaks.push_back({"float16", multiply_fp16, vectors(32)});
  if (isa >= Isa::kAmx) {
    constexpr double kTile = 2.0 * kRounds * 4 * 16 * 16;
    peaks.push_back({"amx_int8", multiply_amx_int8, kTile * 64});
    peaks.push_back({"amx_bfloat16", multiply_amx_bf16, kTile * 32});
  }
  return peaks;
}

void BM_Multiply(benchmark::State& state, const Peak& peak) {
  ThreadPool threads(num_available_cpus());
  const int64_t num_tasks = kTasksPerThread * threads.num_threads();
  double best = 1e9;
  for ([[maybe_unused]] auto _ : state) {
    const double time =
        seconds_of(threads, num_tasks, [&](int64_t, int) { benchmark::DoNotOptimize(peak.multiply()); });
    best = std::min(best, time);
    state.SetIterationTime(time);
  }
  state.counters["GOP/s"] = peak.operations * static_cast<double>(num_tasks) / best * 1e-9;
  state.counters["threads"] = threads.num_threads();
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const Peak& peak : peaks_of_this_machine()) {
    benchmark::RegisterBenchmark((std::string("BM_Multiply/") + peak.name).c_str(), BM_Multiply, peak)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(10);
  }
  return true;
}();
#endif

}  // namespace
}  // namespace transept
