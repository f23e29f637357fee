// What a plan costs on its way to a rank in another process: 64 decoding sequences.
#include <benchmark/benchmark.h>

#include "rank/plan_codec.h"
#include "rank/step_plan_testing.h"

namespace transept {
namespace {

// Blocks of each self and cross table: a translation, a window of Whisper.
void encode_and_decode(benchmark::State& state) {
  const StepPlan plan =
      testing::decode_plan_of(64, static_cast<int32_t>(state.range(0)), static_cast<int32_t>(state.range(1)));
  std::vector<std::byte> bytes;
  StepPlan decoded;
  for ([[maybe_unused]] auto _ : state) {
    encode_plan(plan, bytes);
    if (!decode_plan(bytes, decoded).ok()) state.SkipWithError("it does not decode");
  }
  state.counters["bytes"] = static_cast<double>(bytes.size());
}
BENCHMARK(encode_and_decode)->Args({4, 4})->Args({14, 94})->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace transept
