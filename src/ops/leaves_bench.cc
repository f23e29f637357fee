// What sums in leaves cost (ops/gemm.h) beside one chain: medians of runs in turn, on one thread, of products of k
// inputs and as many outputs (768 of 3072). Arguments: k, m, instruction level, format (0 float32, 1 bfloat16, 2
// float16). Counters: of one chain's time, what 4, 8 and num_leaves() leaves add, in per cent.
#include <time.h>

#include <array>
#include <vector>

#include "ops/bench_support.h"
#include "ops/cpu_device.h"
#include "ops/gemm.h"

namespace transept {
namespace {

constexpr PackedFormat kFormats[] = {{kFloat32Format}, {kBFloat16Format}, {kFloat16Format}};

// Of this thread: what runs beside it shows less than on a clock.
double processor_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

void BM_Leaves(benchmark::State& state) {
  const int64_t k = state.range(0), m = state.range(1), n = k == 3072 ? 768 : k;
  const auto isa = static_cast<Isa>(state.range(2));
  const PackedFormat& format = kFormats[state.range(3)];
  if (isa > detect_isa()) return state.SkipWithError("level not present");
  ThreadPool threads(1);
  Arena arena(size_t{64} << 20);
  CpuDevice device{threads, isa};
  Context context{.device = device, .arena = arena};
  PackedMatrix w(n, k, format);
  std::vector<float> row(static_cast<size_t>(k), 0.01f);
  for (int64_t i = 0; i < n; ++i) w.set_row(i, row);
  PageBuffer x_data(static_cast<size_t>(m * k) * sizeof(float)), y_data(static_cast<size_t>(m * n) * sizeof(float));
  const TensorView x(x_data.data(), DType::kFloat32, {m, k}), y(y_data.data(), DType::kFloat32, {m, n});
  std::fill_n(x.f32(), m * k, 0.5f);
  constexpr std::array<int32_t, 3> kLeaves = {1, 4, 8};
  std::array<std::vector<double>, 3> times;
  size_t turn = 0;
  for (auto _ : state) {
    double sum = 0;
    for (size_t i = 0; i < kLeaves.size(); ++i) {
      const size_t which = (turn + i) % kLeaves.size();
      const double begin = processor_seconds();
      gemm(context, {x, nullptr, kLeaves[which]}, w, {}, y);
      const double time = processor_seconds() - begin;
      times[which].push_back(time);
      sum += time;
    }
    ++turn;
    state.SetIterationTime(sum);
  }
  const double one = median(times[0]);
  const auto price = [&](size_t which) { return 100 * (median(times[which]) / one - 1); };
  state.counters["one_us"] = one * 1e6;
  state.counters["price_4"] = price(1);
  state.counters["price_8"] = price(2);
  state.counters["leaves"] = num_leaves(k, format);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kGeneric}) {
    for (const int64_t k : {384, 512, 768, 1024, 3072}) {
      for (const int64_t m : {1, 8, 192}) {
        for (const int64_t format : {0, 1, 2}) {
          const bool is_slow = isa == Isa::kGeneric && (m == 192 || k > 1024);
          if (!is_slow) b->Args({k, m, static_cast<int64_t>(isa), format});
        }
      }
    }
  }
}

BENCHMARK(BM_Leaves)
    ->ArgNames({"k", "m", "isa", "format"})
    ->Apply(sizes)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace transept
