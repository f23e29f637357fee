// Attention of the shapes that decide: decode reading a long cross cache (batch and beams), decode over its own cache,
// a prompt, an encoder (in float32, and rounded to int8); and a cross cache in every type of KV. GB/s counts the K and
// V that must be read once, beside a plain read of as many bytes. Arguments: sequences or groups, rows each, keys,
// backend level. The T5 cases stand beside the same work without a bias: the two are run in turn, and T5/none is the
// ratio of their best times.
#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "ops/bench_support.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

// heads x head_dim of a small Whisper and of BART.
constexpr int kHeads = 8, kDim = 64;

AttentionProblem shape_of(const benchmark::State& state, AttentionType type, int group) {
  const auto owners = static_cast<int>(state.range(0)), rows = static_cast<int>(state.range(1)),
             keys = static_cast<int>(state.range(2));
  AttentionProblem p;
  p.type = type;
  p.gap = 0;
  p.heads = p.kv_heads = kHeads;
  p.dim = kDim;
  p.causal = type == AttentionType::kDecoder;
  for (int i = 0; i < owners; ++i) {
    p.owners.push_back({static_cast<uint32_t>(i), keys, std::vector<int>(static_cast<size_t>(group), rows)});
  }
  return p;
}

void run(benchmark::State& state, AttentionType type, int group, DType kv_dtype = DType::kFloat32) {
  const auto isa = static_cast<Isa>(state.range(3));
  if (isa > detect_isa()) return state.SkipWithError("level not present");
  AttentionProblem p = shape_of(state, type, group);
  p.kv_dtype = kv_dtype;
  double pairs = 0, keys = 0;
  for (const KeyOwner& owner : p.owners) {
    keys += owner.keys;
    for (int r = 0; r < owner.rows[0]; ++r) pairs += group * p.visible(owner, r);
  }
  ThreadPool threads(num_available_cpus());
  Arena arena(size_t{64} << 20);
  CpuDevice device{threads, isa};
  Context context{.device = device, .arena = arena};
  const auto backend = std::move(make_attention_backend("cpu").value());
  AttentionSetup setup(p, *backend, false);
  setup.run(context);
  const double bytes = 2.0 * keys * kHeads * kDim * sizeof(float);
  report_best(state, threads, bytes, 4.0 * pairs * kHeads * kDim, [&] { setup.run_again(context); });
}

// Attention under T5's bias in turn with attention under none. Heads and dimensions are t5-base's but for their number.
void run_t5(benchmark::State& state, AttentionType type) {
  const auto isa = static_cast<Isa>(state.range(3));
  if (isa > detect_isa()) return state.SkipWithError("level not present");
  AttentionProblem plain = shape_of(state, type, 1), biased = plain;
  biased.bias = BiasForm::kT5;
  ThreadPool threads(num_available_cpus());
  Arena arena(size_t{64} << 20);
  CpuDevice device{threads, isa};
  Context context{.device = device, .arena = arena};
  const auto backend = std::move(make_attention_backend("cpu").value());
  AttentionSetup without(plain, *backend, false), with(biased, *backend, false);
  without.run(context);
  with.run(context);
  double best_without = 1e9, best_with = 1e9;
  for ([[maybe_unused]] auto _ : state) {
    const double time = seconds_of([&] { with.run_again(context); });
    best_with = std::min(best_with, time);
    best_without = std::min(best_without, seconds_of([&] { without.run_again(context); }));
    state.SetIterationTime(time);
  }
  state.counters["best_us"] = best_with * 1e6;
  state.counters["T5/none"] = best_with / best_without;
  state.counters["step_KB"] = static_cast<double>(arena.high_water_bytes()) / 1024;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Every type of KV in turn: medians, and the median of float32's time over each other's in the same turn.
void BM_CrossByKvType(benchmark::State& state) {
  constexpr std::array<DType, 4> kTypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8};
  const auto isa = static_cast<Isa>(state.range(3));
  if (isa > detect_isa()) return state.SkipWithError("level not present");
  ThreadPool threads(static_cast<int>(state.range(4)));
  Arena arena(size_t{64} << 20);
  CpuDevice device{threads, isa};
  Context context{.device = device, .arena = arena};
  AttentionProblem problems[kTypes.size()];
  std::unique_ptr<AttentionBackend> backends[kTypes.size()];
  std::unique_ptr<AttentionSetup> setups[kTypes.size()];
  double bytes[kTypes.size()];
  for (size_t t = 0; t < kTypes.size(); ++t) {
    problems[t] = shape_of(state, AttentionType::kEncoderDecoder, 1);
    problems[t].kv_dtype = kTypes[t];
    backends[t] = std::move(make_attention_backend("cpu").value());
    setups[t] = std::make_unique<AttentionSetup>(problems[t], *backends[t], false);
    setups[t]->run(context);
    const KvSpec spec{.num_kv_heads = kHeads, .head_dim = kDim};
    bytes[t] = static_cast<double>(state.range(0) * state.range(2)) *
               static_cast<double>(backends[t]->block_bytes(spec, problems[t].block_size, kTypes[t])) /
               problems[t].block_size;
  }
  std::vector<double> times[kTypes.size()], ratios[kTypes.size()];
  for ([[maybe_unused]] auto _ : state) {
    for (size_t t = 0; t < kTypes.size(); ++t) {
      times[t].push_back(seconds_of([&] { setups[t]->run_again(context); }));
      ratios[t].push_back(times[0].back() / times[t].back());
    }
    state.SetIterationTime(times[0].back());
  }
  for (size_t t = 0; t < kTypes.size(); ++t) {
    const std::string name(dtype_name(kTypes[t]));
    state.counters[name + "_us"] = median(times[t]) * 1e6;
    state.counters[name + "_GB/s"] = bytes[t] / median(times[t]) * 1e-9;
    state.counters["faster_" + name] = median(ratios[t]);
  }
}

void BM_SelfUnderT5(benchmark::State& state) { run_t5(state, AttentionType::kDecoder); }
void BM_EncoderUnderT5(benchmark::State& state) { run_t5(state, AttentionType::kEncoder); }
void BM_Cross(benchmark::State& state) { run(state, AttentionType::kEncoderDecoder, 1); }
void BM_CrossOfFiveBeams(benchmark::State& state) { run(state, AttentionType::kEncoderDecoder, 5); }
void BM_Self(benchmark::State& state) { run(state, AttentionType::kDecoder, 1); }
void BM_Encoder(benchmark::State& state) { run(state, AttentionType::kEncoder, 1); }
void BM_EncoderInt8(benchmark::State& state) { run(state, AttentionType::kEncoder, 1, DType::kInt8); }

void levels(benchmark::internal::Benchmark* b, const std::vector<std::array<int64_t, 3>>& shapes) {
  b->ArgNames({"owners", "rows", "keys", "isa"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kGeneric}) {
    for (const auto& [owners, rows, keys] : shapes) b->Args({owners, rows, keys, static_cast<int64_t>(isa)});
  }
}

BENCHMARK(BM_Cross)->Apply([](auto* b) { levels(b, {{1, 1, 1500}, {8, 1, 1500}, {32, 1, 128}}); });
BENCHMARK(BM_CrossOfFiveBeams)->Apply([](auto* b) { levels(b, {{1, 1, 1500}, {8, 1, 1500}}); });
BENCHMARK(BM_Self)->Apply([](auto* b) { levels(b, {{1, 1, 100}, {32, 1, 200}, {1, 224, 224}}); });
BENCHMARK(BM_Encoder)->Apply([](auto* b) { levels(b, {{1, 1500, 1500}, {16, 64, 64}}); });
BENCHMARK(BM_EncoderInt8)->Apply([](auto* b) {
  b->ArgNames({"owners", "rows", "keys", "isa"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  for (const Isa isa : {Isa::kAmx, Isa::kAvx512Vnni}) {
    for (const int64_t length : {1500, 512}) b->Args({1, length, length, static_cast<int64_t>(isa)});
    for (const int64_t length : {64, 17}) b->Args({16, length, length, static_cast<int64_t>(isa)});
  }
});
BENCHMARK(BM_CrossByKvType)->Apply([](auto* b) {
  b->ArgNames({"owners", "rows", "keys", "isa", "threads"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  for (const Isa isa : {Isa::kAvx512Vnni, Isa::kAvx512, Isa::kAvx2, Isa::kGeneric}) {
    for (const int64_t threads : {1, 2}) {
      for (const int64_t rows : {1, 5, 8}) {
        b->Args({1, rows, 1500, static_cast<int64_t>(isa), threads});
        b->Args({1, rows, 192, static_cast<int64_t>(isa), threads});
      }
    }
  }
});
BENCHMARK(BM_SelfUnderT5)->Apply([](auto* b) { levels(b, {{1, 1, 100}, {32, 1, 200}, {1, 224, 224}}); });
BENCHMARK(BM_EncoderUnderT5)->Apply([](auto* b) { levels(b, {{1, 512, 512}, {16, 64, 64}, {1, 8192, 8192}}); });

}  // namespace
}  // namespace transept
