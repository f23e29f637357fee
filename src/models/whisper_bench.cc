// Thirty seconds of audio through the encoders of Whisper's sizes, with weights of noise: all of it, the convolutions
// alone, and the attention of all layers alone. What is left is products and norms. Argument: index of kSizes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>

#include "attention/backends.h"
#include "base/folder_testing.h"
#include "core/model_config.h"
#include "models/noise_whisper_testing.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "ops/bench_support.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

using testing::TestFolder;

constexpr int32_t kPositions = 1500;  // NoiseWhisper::positions

struct Size {
  const char* name;
  testing::NoiseWhisper model;
};
const Size kSizes[] = {{"tiny", {.width = 384, .heads = 6, .encoder_layers = 4}},
                       {"base", {.width = 512, .heads = 8, .encoder_layers = 6}},
                       {"small", {.width = 768, .heads = 12, .encoder_layers = 12}}};

void BM_WhisperEncode(benchmark::State& state) {
  state.SetLabel(kSizes[state.range(0)].name);
  const testing::NoiseWhisper& size = kSizes[state.range(0)].model;
  const TestFolder folder;
  size.write(folder);
  ThreadPool threads(num_available_cpus());
  const std::unique_ptr<AttentionBackend> attention = std::move(make_attention_backend("cpu")).value();
  std::shared_ptr<WeightMap> weights = std::move(WeightMap::open(folder.path())).value();
  const std::unique_ptr<Model> model =
      std::move(load_model(*ModelConfig::load(folder.path()), weights, {threads, *attention})).value();

  Arena arena(size_t{256} << 20);
  CpuDevice device{threads, detect_isa()};
  Context context{device, arena};
  const auto features = testing::seeded_features({size.bins, 2 * kPositions}, kPositions);
  const FeaturesView content = *features;
  std::vector<int32_t> positions(kPositions);
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<int32_t> loc = {0, kPositions}, lens = {kPositions};
  EncodeBatch batch{{}, {&content, 1}, positions, {1, kPositions, kPositions, loc, {}, lens}};
  batch.attention.kv_start_loc = loc;
  const auto layers = static_cast<int32_t>(size.encoder_layers);
  const TensorView hidden = arena.tensor(DType::kFloat32, {kPositions, size.width});
  const TensorView qkv = arena.tensor(DType::kFloat32, {kPositions, 3 * size.width});
  std::fill_n(qkv.f32(), qkv.num_elements(), 0.1f);
  AttentionArgs args;
  args.q = qkv.columns(0, size.width).split_heads(size.heads);
  args.k = qkv.columns(size.width, 2 * size.width).split_heads(size.heads);
  args.v = qkv.columns(2 * size.width, 3 * size.width).split_heads(size.heads);
  args.out = hidden.split_heads(size.heads);
  args.scale = 0.125f;

  double all = 1e9, convolutions = 1e9, attending = 1e9;
  for ([[maybe_unused]] auto _ : state) {
    const double time = seconds_of([&] {
      Activations encode{hidden};
      model->encode(context, batch, {0, layers}, encode);
    });
    state.SetIterationTime(time);
    all = std::min(all, time);
    convolutions = std::min(convolutions, seconds_of([&] {
                              Activations encode{hidden};
                              model->encode(context, batch, {0, 0}, encode);
                            }));
    attending = std::min(attending, seconds_of([&] {
                           for (int32_t i = 0; i < layers; ++i) {
                             attention->run(context, AttentionType::kEncoder, batch.attention, args);
                           }
                         }));
  }
  const double rows = kPositions, d = static_cast<double>(size.width);
  state.counters["best_ms"] = all * 1e3;
  state.counters["convolutions_ms"] = convolutions * 1e3;
  state.counters["attention_ms"] = attending * 1e3;
  state.counters["attention_GFLOP/s"] = 4 * rows * rows * d * layers / attending * 1e-9;
  state.counters["rest_GFLOP/s"] = 24 * rows * d * d * layers / (all - convolutions - attending) * 1e-9;
}

BENCHMARK(BM_WhisperEncode)->DenseRange(0, 2)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(1);

}  // namespace
}  // namespace transept
