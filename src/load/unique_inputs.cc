#include "load/unique_inputs.h"

#include <algorithm>
#include <array>
#include <random>

#include "base/strings.h"

namespace transept {
namespace {

constexpr std::array<std::string_view, 64> kVocabulary = {
    "river",   "seven",  "green",   "house",  "under",   "window", "music",  "paper",    "winter",  "garden",  "story",
    "bread",   "early",  "north",   "simple", "orange",  "table",  "letter", "water",    "morning", "quiet",   "stone",
    "light",   "market", "seed",    "silver", "bridge",  "father", "corner", "field",    "island",  "yellow",  "train",
    "village", "number", "cloud",   "doctor", "summer",  "glass",  "school", "horse",    "road",    "evening", "friend",
    "picture", "mother", "wind",    "forest", "coffee",  "street", "moment", "blue",     "engine",  "people",  "answer",
    "silence", "color",  "machine", "world",  "kitchen", "travel", "night",  "question", "tree"};

constexpr uint32_t kNumberBits = 25;

// What is drawn for one use of one request.
enum class Use : uint32_t { kNumber, kWords, kLength, kNoise };

std::mt19937_64 random_for(uint64_t seed, int64_t index, Use use) {
  const auto number = static_cast<uint64_t>(index);
  std::seed_seq sequence{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(number),
                         static_cast<uint32_t>(number >> 32), static_cast<uint32_t>(use)};
  return std::mt19937_64(sequence);
}

uint32_t little_endian(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[at + i - 1]);
  return value;
}

}  // namespace

uint32_t unique_number(uint64_t seed, int64_t index) {
  constexpr uint32_t kMask = (uint32_t{1} << kNumberBits) - 1;
  // Multiplying by an odd number and adding another permute the numbers of so many bits.
  const auto shift = static_cast<uint32_t>(random_for(seed, 0, Use::kNumber)());
  return (static_cast<uint32_t>(index) * 0x9E3779B1u + shift) & kMask;
}

std::string unique_prompt(uint64_t seed, int64_t index, int64_t num_words) {
  std::mt19937_64 random = random_for(seed, index, Use::kWords);
  std::string prompt = str_cat(unique_number(seed, index));
  for (int64_t i = 1; i < num_words; ++i) {
    prompt += ' ';
    prompt += kVocabulary[random() % kVocabulary.size()];
  }
  return prompt;
}

int64_t max_prompt_bytes(int64_t num_words) {
  constexpr int64_t kNumberDigits = 8;  // of 2^25 - 1
  const auto longest = std::max_element(kVocabulary.begin(), kVocabulary.end(),
                                        [](std::string_view a, std::string_view b) { return a.size() < b.size(); });
  return kNumberDigits + std::max<int64_t>(0, num_words - 1) * (1 + static_cast<int64_t>(longest->size()));
}

std::string numbered_text(uint64_t seed, int64_t index, std::string_view text) {
  return str_cat(unique_number(seed, index), " ", text);
}

int64_t drawn_length(uint64_t seed, int64_t index, int64_t low, int64_t high) {
  if (low == high) return low;
  return low + static_cast<int64_t>(random_for(seed, index, Use::kLength)() % static_cast<uint64_t>(high - low + 1));
}

std::optional<PcmPlace> find_pcm16(std::string_view wav) {
  constexpr size_t kChunkHead = 8, kFormatBytes = 16;
  if (wav.size() < 12 || wav.substr(0, 4) != "RIFF" || wav.substr(8, 4) != "WAVE") return std::nullopt;
  uint32_t bytes_per_second = 0;
  for (size_t at = 12; at + kChunkHead <= wav.size();) {
    const std::string_view name = wav.substr(at, 4);
    const size_t size = little_endian(wav, at + 4, 4);
    at += kChunkHead;
    const size_t have = std::min(size, wav.size() - at);
    if (name == "fmt ") {
      if (have < kFormatBytes || little_endian(wav, at, 2) != 1 || little_endian(wav, at + 14, 2) != 16) break;
      bytes_per_second = little_endian(wav, at + 8, 4);
    } else if (name == "data") {
      const size_t num_bytes = have - have % 2;
      if (bytes_per_second == 0 || num_bytes == 0) break;
      return PcmPlace{at, num_bytes, static_cast<double>(num_bytes) / bytes_per_second};
    }
    at += have + have % 2;
  }
  return std::nullopt;
}

std::string noisy_wav(uint64_t seed, int64_t index, std::string_view wav, const PcmPlace& place) {
  std::mt19937_64 random = random_for(seed, index, Use::kNoise);
  std::string noisy(wav);
  uint64_t bits = 0;
  for (size_t i = 0; i < place.num_bytes; i += 2) {
    if (i % 32 == 0) bits = random();  // of 64 bits each of 16 samples takes four
    const size_t at = place.offset + i;
    const auto sample = static_cast<int16_t>(little_endian(wav, at, 2));
    const int noise = static_cast<int>(bits & 3) - static_cast<int>(bits >> 2 & 3);  // -3..3, mostly 0
    bits >>= 4;
    const auto moved = static_cast<uint16_t>(std::clamp(sample + std::clamp(noise, -2, 2), -32768, 32767));
    noisy[at] = static_cast<char>(moved & 0xFF);
    noisy[at + 1] = static_cast<char>(moved >> 8);
  }
  return noisy;
}

}  // namespace transept
