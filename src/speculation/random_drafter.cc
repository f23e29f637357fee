#include "speculation/random_drafter.h"

#include "base/check.h"
#include "sampling/random.h"

namespace transept {
namespace {

constexpr size_t kNumPairs = size_t{1} << 14;

uint64_t key(uint64_t a, uint64_t b, uint64_t c) { return mix64(mix64(mix64(a) ^ b) ^ c); }

// Uniform in [0, 1).
double share(uint64_t key) { return static_cast<double>(key >> 11) * 0x1.0p-53; }

}  // namespace

RandomDrafter::RandomDrafter(const Options& options) : options_(options), next_(kNumPairs, -1) {
  CHECK(options.vocab_size > 1, "no id could be wrong");
}

size_t RandomDrafter::pair_of(int32_t before, int32_t last) const {
  return mix64(static_cast<uint64_t>(before) << 32 | static_cast<uint32_t>(last)) % kNumPairs;
}

void RandomDrafter::learn(const DraftAsk& ask, DraftMemory& memory) {
  const std::span<const int32_t> output = ask.output();
  for (; memory.num_seen < std::ssize(output); ++memory.num_seen) {
    const auto i = static_cast<size_t>(memory.num_seen);
    if (i >= 2) next_[pair_of(output[i - 2], output[i - 1])] = output[i];
  }
}

void RandomDrafter::propose(const DraftAsk& ask, DraftMemory& memory, std::vector<int32_t>& draft) {
  draft.clear();
  learn(ask, memory);
  const std::span<const int32_t> output = ask.output();
  const auto vocab = static_cast<uint64_t>(options_.vocab_size);
  const uint64_t step = key(options_.seed ^ ask.seed, static_cast<uint64_t>(ask.index), output.size());
  const auto most = static_cast<uint64_t>(ask.max_tokens);
  const uint64_t length = options_.has_random_length ? mix64(step) % (most + 1) : most;
  int32_t before = output.size() < 2 ? -1 : output[output.size() - 2], last = output.empty() ? -1 : output.back();
  for (uint64_t i = 0; i < length; ++i) {
    const size_t place = output.size() + i;
    int32_t truth = place < ask.given.size() ? ask.given[place] : -1;
    if (ask.given.empty()) truth = next_[pair_of(before, last)];
    const uint64_t draw = key(step, i, 1);
    int32_t token = truth;
    if (truth < 0 || share(draw) >= options_.truth) {
      token = static_cast<int32_t>(mix64(draw) % vocab);
      if (token == truth) token = static_cast<int32_t>((static_cast<uint64_t>(token) + 1) % vocab);
    }
    draft.push_back(token);
    before = last;
    last = token;
  }
}

}  // namespace transept
