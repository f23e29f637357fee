// What this machine offers on all of its threads: bytes read a second from memory, float32 operations a second from
// registers. The bounds that bench/compare_ctranslate2.py holds measurements against.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/isa.h"
#include "base/thread_pool.h"
#include "tensor/arena.h"

namespace transept {
namespace {

constexpr int64_t kTasksPerThread = 8;

double seconds_of(ThreadPool& threads, FunctionRef<void(int64_t, int)> task) {
  const auto begin = std::chrono::steady_clock::now();
  threads.parallel_for(kTasksPerThread * threads.num_threads(), task);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Four streams with a prefetch ahead, as the kernels read: FACTS of these machines say that it is the fastest.
double sum_of(const float* data, int64_t count) {
  constexpr int64_t kStreams = 4, kStep = 16;
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

void BM_Read(benchmark::State& state) {
  const int64_t bytes = state.range(0) << 20;
  ThreadPool threads(num_available_cpus());
  PageBuffer pages(static_cast<size_t>(bytes));
  auto* data = reinterpret_cast<float*>(pages.data());
  const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
  std::fill_n(data, count, 1.0f);
  const int64_t slice = count / (kTasksPerThread * threads.num_threads());
  double best = 1e9;
  for ([[maybe_unused]] auto _ : state) {
    const double time =
        seconds_of(threads, [&](int64_t task, int) { benchmark::DoNotOptimize(sum_of(data + task * slice, slice)); });
    best = std::min(best, time);
    state.SetIterationTime(time);
  }
  state.counters["GB/s"] = static_cast<double>(bytes) / best * 1e-9;
  state.counters["threads"] = threads.num_threads();
}
BENCHMARK(BM_Read)->ArgName("MiB")->Arg(64)->Arg(1024)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(20);

#if defined(__x86_64__)
constexpr int64_t kRounds = 200000;
constexpr int kChains = 16;  // independent sums: more than latency times units

__attribute__((target("avx512f"))) float multiply_avx512() {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.0f);
  const __m512 factor = _mm512_set1_ps(0.999f), addend = _mm512_set1_ps(0.001f);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, addend);
  }
  float total = 0;
  for (const __m512& sum : sums) {
    // Not _mm512_reduce_add_ps: g++ 12 warns of its own header (GCC bug 105593).
    float lanes[16];
    _mm512_storeu_ps(lanes, sum);
    for (const float lane : lanes) total += lane;
  }
  return total;
}

__attribute__((target("avx2,fma"))) float multiply_avx2() {
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_set1_ps(1.0f);
  const __m256 factor = _mm256_set1_ps(0.999f), addend = _mm256_set1_ps(0.001f);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, addend);
  }
  alignas(32) float lanes[8];
  __m256 total = sums[0];
  for (int i = 1; i < kChains; ++i) total = _mm256_add_ps(total, sums[i]);
  _mm256_store_ps(lanes, total);
  return lanes[0];
}

void BM_Multiply(benchmark::State& state) {
  const Isa isa = detect_isa();
  if (isa < Isa::kAvx2) return state.SkipWithError("no AVX2 on this processor");
  const bool wide = isa >= Isa::kAvx512;
  ThreadPool threads(num_available_cpus());
  double best = 1e9;
  for ([[maybe_unused]] auto _ : state) {
    const double time = seconds_of(
        threads, [&](int64_t, int) { benchmark::DoNotOptimize(wide ? multiply_avx512() : multiply_avx2()); });
    best = std::min(best, time);
    state.SetIterationTime(time);
  }
  const double flop = 2.0 * kRounds * kChains * (wide ? 16 : 8) * kTasksPerThread * threads.num_threads();
  state.counters["GFLOP/s"] = flop / best * 1e-9;
  state.counters["threads"] = threads.num_threads();
}
BENCHMARK(BM_Multiply)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(10);
#endif

}  // namespace
}  // namespace transept
