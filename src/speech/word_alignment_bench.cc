#include "speech/word_alignment.h"

#include <benchmark/benchmark.h>

#include <random>

namespace transept {
namespace {

// A full window: 30 s, as many tokens as fit the decoder, six heads (whisper-tiny).
void full_window(benchmark::State& state) {
  constexpr int64_t kHeads = 6, kPositions = 1500, kPrefix = 3;
  const int64_t num_texts = state.range(0), num_tokens = kPrefix + num_texts + 2;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(0, 1.0f / 750);
  std::vector<float> attention(kHeads * num_tokens * kPositions), probabilities(num_texts, 0.5f);
  for (float& weight : attention) weight = uniform(random);
  const std::vector<int32_t> tokens(num_texts, 1);
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    benchmark::DoNotOptimize(align_words(
        {.attention = attention,
         .num_heads = kHeads,
         .num_tokens = num_tokens,
         .num_positions = kPositions,
         .num_prefix_tokens = kPrefix,
         .num_frames = 2 * kPositions,
         .text_tokens = tokens,
         .probabilities = probabilities},
        [](int32_t, std::string& out) { out += " w"; }, WordSplit::kSpaces));
  }
}
BENCHMARK(full_window)->Arg(100)->Arg(440)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace transept
