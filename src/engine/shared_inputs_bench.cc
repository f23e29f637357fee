// What it costs the engine's thread to find out whether an encoder input is in flight already: it stands between steps.
#include <benchmark/benchmark.h>

#include "engine/shared_inputs.h"

namespace transept {
namespace {

// A second request with the input of one in flight: a Whisper window of so many frames.
void attach_twin(benchmark::State& state) {
  SteadyClock clock;
  Scheduler scheduler({}, {.num_device_blocks = 8}, clock);
  SharedInputs shared(scheduler, true);
  const int64_t num_frames = state.range(0);
  const auto window = [&] {
    auto features = std::make_shared<EncoderFeatures>();
    features->shape = {80, num_frames};
    for (int64_t i = 0; i < 80 * num_frames; ++i) features->values.push_back(static_cast<float>(i % 977));
    features->num_positions = static_cast<int32_t>(num_frames / 2);
    EncoderDecoderInputs inputs;
    inputs.set_encoder_features(std::move(features));
    make_digests(inputs.items, {});
    return inputs.items;
  };
  std::vector<EncoderItem> first = window(), second = window();
  shared.attach(GroupId(1), first);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(shared.attach(GroupId(2), second));
    shared.detach(GroupId(2));
  }
}
BENCHMARK(attach_twin)->Arg(200)->Arg(3000);

// What the thread that brings it pays.
void digest_window(benchmark::State& state) {
  auto features = std::make_shared<EncoderFeatures>();
  features->shape = {80, state.range(0)};
  features->values.resize(static_cast<size_t>(80 * state.range(0)), 0.5f);
  const EncoderItem item({}, features);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(item_digest(item));
}
BENCHMARK(digest_window)->Arg(200)->Arg(3000);

void digest_ids(benchmark::State& state) {
  const EncoderItem item(std::vector<int32_t>(static_cast<size_t>(state.range(0)), 7));
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(item_digest(item));
}
BENCHMARK(digest_ids)->Arg(16)->Arg(512);

}  // namespace
}  // namespace transept
