// Products of the sizes that FACTS names: few rows against the speed of a plain read of the weights, many rows against
// arithmetic. Arguments: n, k, m, instruction level, format (0 float32, 1
// bfloat16, 2 int8, 3 int8 with wide inputs, 4 bfloat16 with bfloat16 inputs).
#include "ops/bench_support.h"
#include "ops/cpu_device.h"
#include "ops/gemm.h"

namespace transept {
namespace {

constexpr PackedFormat kFormats[] = {{kFloat32Format},
                                     {kBFloat16Format},
                                     {kInt8Format},
                                     {kInt8Format, InputRounding::kWide},
                                     {kBFloat16Format, InputRounding::kBFloat16}};

void BM_Gemm(benchmark::State& state) {
  const int64_t n = state.range(0), k = state.range(1), m = state.range(2);
  const auto isa = static_cast<Isa>(state.range(3));
  if (isa > detect_isa()) return state.SkipWithError("level not present");
  ThreadPool threads(num_available_cpus());
  Arena arena(size_t{64} << 20);
  CpuDevice device{threads, isa};
  Context context{.device = device, .arena = arena};
  PackedMatrix w(n, k, kFormats[state.range(4)]);
  std::vector<float> row(static_cast<size_t>(k), 0.01f);
  for (int64_t i = 0; i < n; ++i) w.set_row(i, row);
  PageBuffer x_data(static_cast<size_t>(m * k) * sizeof(float)), y_data(static_cast<size_t>(m * n) * sizeof(float));
  const TensorView x(x_data.data(), DType::kFloat32, {m, k}), y(y_data.data(), DType::kFloat32, {m, n});
  std::fill_n(x.f32(), m * k, 0.5f);
  report_best(state, threads, static_cast<double>(w.bytes()), 2.0 * static_cast<double>(m * n * k),
              [&] { gemm(context, x, w, {}, y); });
}

// The highest level that a format has kernels of its own for, and those below.
void sizes(benchmark::internal::Benchmark* b) {
  const auto add = [&](int64_t n, int64_t k, int64_t m, Isa isa, int64_t format) {
    b->Args({n, k, m, static_cast<int64_t>(isa), format});
  };
  for (const Isa isa : {Isa::kAmx, Isa::kAvx512Bf16, Isa::kAvx512Vnni, Isa::kAvx512, Isa::kAvx2, Isa::kGeneric}) {
    for (const int64_t m : {1, 2, 4, 8, 16, 32, 64, 512, 1500}) {
      for (const int64_t format : {0, 1, 2, 3, 4}) {
        const bool is_slow = isa == Isa::kGeneric && m >= 64;
        const bool has_own = isa == Isa::kAmx          ? format >= 2
                             : isa == Isa::kAvx512Bf16 ? format == 4
                             : isa == Isa::kAvx512Vnni ? format == 2 || format == 3
                                                       : format < 4;
        if (has_own && !is_slow) add(3072, 768, m, isa, format);
      }
    }
  }
  for (const int64_t m : {1, 8, 64, 1500}) {
    for (const auto& [n, k] :
         {std::pair<int64_t, int64_t>{384, 384}, {512, 512}, {1024, 4096}, {4096, 1024}, {50272, 1024}}) {
      if (m == 1500 && n > 10000) continue;
      for (const int64_t format : {0, 2}) add(n, k, m, Isa::kAvx512Vnni, format);
      add(n, k, m, Isa::kAvx512Bf16, 4);
      for (const int64_t format : {2, 4}) add(n, k, m, Isa::kAmx, format);
    }
  }
}

BENCHMARK(BM_Gemm)
    ->ArgNames({"n", "k", "m", "isa", "format"})
    ->Apply(sizes)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace transept
