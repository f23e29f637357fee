// 12 megapixels to the input of a tower: how many of such pictures one thread resizes in a second ("pictures"). What
// Pillow takes for the same: tests/images/resize_time.py.
#include <benchmark/benchmark.h>

#include "media/resize.h"
#include "media/resize_testing.h"

namespace transept {
namespace {

void BM_Resize(benchmark::State& state) {
  const auto isa = static_cast<Isa>(state.range(0));
  if (isa > detect_isa()) return state.SkipWithError("level not present");
  const auto size = static_cast<int32_t>(state.range(2));
  const ResizeOptions options{.filter = static_cast<ResizeFilter>(state.range(1))};
  const RgbImage image = testing::make_picture(4000, 3000, 1);
  while (state.KeepRunning()) {
    auto resized = resize(image, size, size, options, isa);
    benchmark::DoNotOptimize(resized->pixels.data());
  }
  state.counters["pictures"] = benchmark::Counter(1, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(BM_Resize)
    ->ArgNames({"isa", "filter", "size"})
    ->ArgsProduct({{static_cast<int64_t>(Isa::kAvx512), static_cast<int64_t>(Isa::kAvx2),
                    static_cast<int64_t>(Isa::kGeneric)},
                   {static_cast<int64_t>(ResizeFilter::kBilinear), static_cast<int64_t>(ResizeFilter::kBicubic)},
                   {384, 1280}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace transept
