// Products of the sizes that FACTS names: few rows against the speed of a plain read of the weights, many rows against
// arithmetic. Arguments: n, k, m, instruction level.
#include "ops/bench_support.h"
#include "ops/gemm.h"

namespace transept {
namespace {

void BM_Gemm(benchmark::State& state) {
  const int64_t n = state.range(0), k = state.range(1), m = state.range(2);
  const auto isa = static_cast<Isa>(state.range(3));
  if (isa > detect_isa()) return state.SkipWithError("level not present");
  ThreadPool threads(num_available_cpus());
  Arena arena(size_t{64} << 20);
  Context context{.threads = threads, .arena = arena, .isa = isa};
  PackedMatrix w(n, k);
  std::vector<float> row(static_cast<size_t>(k), 0.01f);
  for (int64_t i = 0; i < n; ++i) w.set_row(i, row);
  PageBuffer x_data(static_cast<size_t>(m * k) * sizeof(float)), y_data(static_cast<size_t>(m * n) * sizeof(float));
  const TensorView x(x_data.data(), DType::kFloat32, {m, k}), y(y_data.data(), DType::kFloat32, {m, n});
  std::fill_n(x.f32(), m * k, 0.5f);
  report_best(state, threads, static_cast<double>(w.bytes()), 2.0 * static_cast<double>(m * n * k),
              [&] { gemm(context, x, w, {}, y); });
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kGeneric}) {
    for (const int64_t m : {1, 2, 4, 8, 16, 64, 512, 1500}) b->Args({3072, 768, m, static_cast<int64_t>(isa)});
  }
  for (const int64_t m : {1, 8, 64, 1500}) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{512, 512}, {1024, 4096}, {4096, 1024}, {50272, 1024}}) {
      if (m == 1500 && n > 10000) continue;
      b->Args({n, k, m, static_cast<int64_t>(Isa::kAvx512)});
    }
  }
}

BENCHMARK(BM_Gemm)->ArgNames({"n", "k", "m", "isa"})->Apply(sizes)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace transept
