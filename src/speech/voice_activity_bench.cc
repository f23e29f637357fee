#include "speech/voice_activity.h"

#include <benchmark/benchmark.h>

#include <random>

namespace transept {
namespace {

// items_per_second: seconds of audio a second.
void a_minute(benchmark::State& state) {
  constexpr int kBins = 80, kFrames = 6000;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(-4, 1);
  std::vector<float> frames(kBins * kFrames);
  for (float& value : frames) value = normal(random);
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    benchmark::DoNotOptimize(detect_voice(frames, kBins));
  }
  state.SetItemsProcessed(state.iterations() * kFrames / 100);
}
BENCHMARK(a_minute)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace transept
