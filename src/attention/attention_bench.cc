// Attention of the shapes that decide: decode reading a long cross cache (batch and beams), decode over its own cache,
// a prompt, an encoder. GB/s counts the K and V that must be read once, beside a plain read of as many bytes.
// Arguments: sequences or groups, rows each, keys, backend level.
#include "attention/attention_problem.h"
#include "ops/bench_support.h"

namespace transept {
namespace {

// heads x head_dim of a small Whisper and of BART.
constexpr int kHeads = 8, kDim = 64;

void run(benchmark::State& state, AttentionType type, int group) {
  const auto owners = static_cast<int>(state.range(0)), rows = static_cast<int>(state.range(1)),
             keys = static_cast<int>(state.range(2));
  const auto isa = static_cast<Isa>(state.range(3));
  if (isa > detect_isa()) return state.SkipWithError("level not present");
  AttentionProblem p;
  p.type = type;
  p.gap = 0;
  p.heads = p.kv_heads = kHeads;
  p.dim = kDim;
  p.causal = type == AttentionType::kDecoder;
  double pairs = 0;
  for (int i = 0; i < owners; ++i) {
    p.owners.push_back({static_cast<uint32_t>(i), keys, std::vector<int>(static_cast<size_t>(group), rows)});
    for (int r = 0; r < rows; ++r) pairs += group * p.visible(p.owners.back(), r);
  }
  ThreadPool threads(num_available_cpus());
  Arena arena(size_t{64} << 20);
  Context context{.threads = threads, .arena = arena, .isa = isa};
  const auto backend = std::move(make_attention_backend("cpu").value());
  AttentionSetup setup(p, *backend, false);
  setup.run(context);
  const double bytes = 2.0 * owners * keys * kHeads * kDim * sizeof(float);
  report_best(state, threads, bytes, 4.0 * pairs * kHeads * kDim, [&] { setup.run_again(context); });
}

void BM_Cross(benchmark::State& state) { run(state, AttentionType::kEncoderDecoder, 1); }
void BM_CrossOfFiveBeams(benchmark::State& state) { run(state, AttentionType::kEncoderDecoder, 5); }
void BM_Self(benchmark::State& state) { run(state, AttentionType::kDecoder, 1); }
void BM_Encoder(benchmark::State& state) { run(state, AttentionType::kEncoder, 1); }

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

}  // namespace
}  // namespace transept
