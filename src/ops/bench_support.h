// Benchmark support: the best of many runs, next to a plain read of as many bytes on the same threads at the same time,
// because machines are shared and memory speeds vary. Not part of the library.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "base/thread_pool.h"
#include "ops/vec_generic.h"
#include "tensor/arena.h"

namespace transept {

// Reads memory once in each run(), on all threads.
class PlainRead final {
 public:
  explicit PlainRead(size_t bytes) : pages_(std::max<size_t>(bytes, 4096)) {
    std::fill_n(reinterpret_cast<float*>(pages_.data()), pages_.size() / sizeof(float), 1.0f);
  }

  void run(ThreadPool& threads) {
    constexpr int64_t kTasks = 16, kVecs = 16;
    using Vec = generic::Vec;
    const auto* data = reinterpret_cast<const float*>(pages_.data());
    const auto vectors = static_cast<int64_t>(pages_.size() / sizeof(float)) / (kVecs * Vec::kLanes);
    threads.parallel_for(kTasks, [&](int64_t task, int) {
      Vec::Reg sums[kVecs] = {};
      for (int64_t i = vectors * task / kTasks; i < vectors * (task + 1) / kTasks; ++i) {
        const float* p = data + i * kVecs * Vec::kLanes;
        Vec::prefetch(p + 512);
        for (int64_t v = 0; v < kVecs; ++v) sums[v] = Vec::add(sums[v], Vec::load(p + v * Vec::kLanes));
      }
      for (const Vec::Reg& sum : sums) benchmark::DoNotOptimize(Vec::reduce_add(sum));
    });
  }

 private:
  PageBuffer pages_;
};

template <class Work>
// Returns the seconds that work() takes.
double seconds_of(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Times `work`, which reads `bytes` and does `flop` operations, in the state's loop, and reports the best run.
template <class Work>
void report_best(benchmark::State& state, ThreadPool& threads, double bytes, double flop, Work&& work) {
  PlainRead read(static_cast<size_t>(bytes));
  double best = 1e9, best_read = 1e9;
  for (auto _ : state) {
    best_read = std::min(best_read, seconds_of([&] { read.run(threads); }));
    work();  // brings its bytes back into the cache
    const double time = seconds_of(work);
    best = std::min(best, time);
    state.SetIterationTime(time);
  }
  state.counters["best_us"] = best * 1e6;
  state.counters["GB/s"] = bytes / best * 1e-9;
  state.counters["read_GB/s"] = bytes / best_read * 1e-9;
  state.counters["GFLOP/s"] = flop / best * 1e-9;
}

}  // namespace transept
