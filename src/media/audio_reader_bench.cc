// Decoding and resampling to 16 kHz mono of 60 s of sound: how many seconds of audio one thread reads in a second
// ("audio"). Argument: the file's rate and channels, 16 bits each.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>

#include "media/audio_reader.h"

namespace transept {
namespace {

constexpr int kSeconds = 60;

std::string little(uint32_t value, int num_bytes) {
  std::string bytes;
  for (int i = 0; i < num_bytes; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string make_wav(uint32_t rate, uint32_t channels) {
  std::string data;
  for (uint32_t i = 0; i < rate * kSeconds * channels; ++i) {
    data += little(static_cast<uint32_t>(static_cast<int32_t>(9000 * std::sin(0.05 * i))), 2);
  }
  const uint32_t frame = 2 * channels;
  return str_cat("RIFF", little(static_cast<uint32_t>(36 + data.size()), 4), "WAVEfmt ", little(16, 4), little(1, 2),
                 little(channels, 2), little(rate, 4), little(rate * frame, 4), little(frame, 2), little(16, 2), "data",
                 little(static_cast<uint32_t>(data.size()), 4), data);
}

void BM_AudioReader(benchmark::State& state) {
  const std::string content = make_wav(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)));
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  std::vector<float> out(16000);
  while (state.KeepRunning()) {
    const auto reader = AudioReader::open({nullptr, bytes}, {});
    if (!reader.ok()) return state.SkipWithError("cannot be read");
    for (size_t count = 1; count > 0;) count = (*reader)->read(out).value_or(0);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["audio"] = benchmark::Counter(kSeconds, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(BM_AudioReader)
    ->ArgNames({"rate", "channels"})
    ->Args({16000, 1})
    ->Args({44100, 2})
    ->Args({48000, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace transept
