// Thirty seconds of audio through the encoders of Whisper's sizes, with weights of noise: all of it, the convolutions
// alone, and the attention of all layers alone. What is left is products and norms. Argument: index of kSizes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>

#include "attention/backends.h"
#include "base/folder_testing.h"
#include "base/strings.h"
#include "core/model_config.h"
#include "models/registry.h"
#include "models/run_model_testing.h"
#include "ops/bench_support.h"
#include "ops/cpu_device.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

using testing::TestFolder;
using testing::TestTensor;

constexpr int32_t kPositions = 1500;

struct Size {
  const char* name;
  int64_t width, layers, heads, bins;
};
constexpr Size kSizes[] = {{"tiny", 384, 4, 6, 80}, {"base", 512, 6, 8, 80}, {"small", 768, 12, 12, 80}};

std::vector<TestTensor> tensors_of(const Size& size) {
  std::vector<TestTensor> list;
  uint32_t seed = 1;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    int64_t inputs = 1;
    for (size_t i = 1; i < shape.size(); ++i) inputs *= shape[i];
    std::vector<float> values = testing::seeded_features(shape, 0, seed++)->values;
    for (float& value : values) value /= std::sqrt(static_cast<float>(inputs));
    list.push_back({name, "F32", std::move(shape), testing::bytes_of(values)});
  };
  const auto both = [&](const std::string& name, std::vector<int64_t> shape) {
    add(name + ".bias", {shape[0]});
    add(name + ".weight", std::move(shape));
  };
  const int64_t d = size.width;
  const auto attention = [&](const std::string& name) {
    for (const char* part : {".q_proj", ".v_proj", ".out_proj"}) both(name + part, {d, d});
    add(name + ".k_proj.weight", {d, d});
    both(name + "_layer_norm", {d});
  };
  both("encoder.conv1", {d, size.bins, 3});
  both("encoder.conv2", {d, d, 3});
  add("encoder.embed_positions.weight", {kPositions, d});
  add("decoder.embed_positions.weight", {4, d});
  add("decoder.embed_tokens.weight", {32, d});
  for (const std::string side : {"encoder", "decoder"}) {
    for (int64_t i = 0; i < (side == "encoder" ? size.layers : 1); ++i) {
      const std::string layer = str_cat(side, ".layers.", i);
      attention(layer + ".self_attn");
      if (side == "decoder") attention(layer + ".encoder_attn");
      both(layer + ".fc1", {4 * d, d});
      both(layer + ".fc2", {d, 4 * d});
      both(layer + ".final_layer_norm", {d});
    }
    both(side + ".layer_norm", {d});
  }
  return list;
}

std::string config_of(const Size& size) {
  return str_cat(R"({"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "vocab_size": 32,)",
                 R"("max_source_positions": )", kPositions, R"(, "max_target_positions": 4, "num_mel_bins": )",
                 size.bins, R"(, "d_model": )", size.width, R"(, "encoder_layers": )", size.layers,
                 R"(, "decoder_layers": 1, "encoder_attention_heads": )", size.heads,
                 R"(, "decoder_attention_heads": )", size.heads, R"(, "encoder_ffn_dim": )", 4 * size.width,
                 R"(, "decoder_ffn_dim": )", 4 * size.width, "}");
}

void BM_WhisperEncode(benchmark::State& state) {
  const Size& size = kSizes[state.range(0)];
  state.SetLabel(size.name);
  const TestFolder folder;
  folder.write("config.json", config_of(size));
  folder.write("model.safetensors", testing::safetensors_bytes(tensors_of(size)));
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
  const auto layers = static_cast<int32_t>(size.layers);
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
