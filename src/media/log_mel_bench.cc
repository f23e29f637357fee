// Log-mel of a 30 s window: how many seconds of audio one thread makes in a second ("audio"). Arguments: bins, level,
// how many seconds of the window hold sound.
#include <benchmark/benchmark.h>

#include <cmath>

#include "media/log_mel.h"

namespace transept {
namespace {

void BM_LogMel(benchmark::State& state) {
  const auto isa = static_cast<Isa>(state.range(1));
  if (isa > detect_isa()) return state.SkipWithError("level not present");
  const auto log_mel = LogMel::create({.num_mel_bins = static_cast<int32_t>(state.range(0))}, isa);
  std::vector<float> samples(static_cast<size_t>(state.range(2)) * 16000);
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto t = static_cast<double>(i);
    samples[i] = static_cast<float>(0.3 * std::sin(0.1 * t) + 0.1 * std::sin(0.71 * t));
  }
  std::vector<float> out(static_cast<size_t>(state.range(0)) * 3000);
  while (state.KeepRunning()) {
    log_mel->window(samples, 480000, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["audio"] = benchmark::Counter(30, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(BM_LogMel)
    ->ArgNames({"bins", "isa", "seconds"})
    ->ArgsProduct({{80, 128}, {static_cast<int64_t>(Isa::kAvx2), static_cast<int64_t>(Isa::kGeneric)}, {30, 5}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace transept
