// Decoding to RGB on one thread: how many pixels it makes in a second ("pixels").
#include "media/image_reader.h"

#include <benchmark/benchmark.h>

#include <string>

#include "media/image_encoders_testing.h"

namespace transept {
namespace {

void decode(benchmark::State& state, const std::string& content) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  int64_t num_pixels = 0;
  while (state.KeepRunning()) {
    const auto reader = ImageReader::open(bytes);
    if (!reader.ok()) return state.SkipWithError("cannot be read");
    const auto image = (*reader)->decode();
    if (!image.ok()) return state.SkipWithError("cannot be decoded");
    benchmark::DoNotOptimize(image->pixels.data());
    num_pixels = int64_t{image->width} * image->height;
  }
  state.counters["pixels"] =
      benchmark::Counter(static_cast<double>(num_pixels), benchmark::Counter::kIsIterationInvariantRate);
}

// A photograph with an EXIF orientation, before the rest of the JPEG.
std::string turned(const std::string& jpeg, char orientation) {
  std::string segment(
      "\xff\xe1\0\x22"
      "Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0?\0\0\0\0\0\0\0",
      36);
  segment[segment.find('?')] = orientation;
  return jpeg.substr(0, 2) + segment + jpeg.substr(2);
}

void BM_Jpeg(benchmark::State& state) {  // 12 Mpx, 4:2:0
  const bool is_progressive = state.range(0) != 0;
  const std::string jpeg = encode_jpeg(make_photo(4000, 3000), {.is_progressive = is_progressive});
  decode(state, turned(jpeg, static_cast<char>(state.range(1))));
}
BENCHMARK(BM_Jpeg)
    ->ArgNames({"progressive", "turned"})
    ->Args({0, 1})
    ->Args({0, 6})
    ->Args({1, 1})
    ->Unit(benchmark::kMillisecond);

void BM_Png(benchmark::State& state) { decode(state, encode_png(make_photo(1024, 1024))); }
BENCHMARK(BM_Png)->Unit(benchmark::kMillisecond);

void BM_Webp(benchmark::State& state) {
  decode(state, encode_webp(make_photo(1024, 1024), static_cast<WebpKind>(state.range(0))));
}
BENCHMARK(BM_Webp)->ArgName("kind")->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace transept
