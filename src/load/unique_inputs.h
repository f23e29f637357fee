// Inputs that are all different, so that no cache and no sharing between requests flatters the server. Everything is a
// function of (seed, index). Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace transept {

// A number for request `index` that no other index below 2^25 has with this seed.
uint32_t unique_number(uint64_t seed, int64_t index);

// A prompt of `num_words` words; the first is unique_number: "20417533 river seven ...". Common English words: most
// tokenizers use one token per word, and a few for the number.
std::string unique_prompt(uint64_t seed, int64_t index, int64_t num_words);

// Bytes of the longest unique_prompt of `num_words` words.
int64_t max_prompt_bytes(int64_t num_words);

// The user's text with the number before it.
std::string numbered_text(uint64_t seed, int64_t index, std::string_view text);

// Uniform from low to high, both included.
int64_t drawn_length(uint64_t seed, int64_t index, int64_t low, int64_t high);

struct PcmPlace {
  size_t offset = 0, num_bytes = 0;  // of the samples in the file
  double seconds = 0;
};

// Finds the samples of a RIFF/WAVE file of 16-bit PCM; nullopt: the file is something else, or broken.
std::optional<PcmPlace> find_pcm16(std::string_view wav);

// Returns the file with noise of at most two steps of 65536 on every sample (-84 dB of full scale): inaudible, but a
// different input. Nothing else changes.
std::string noisy_wav(uint64_t seed, int64_t index, std::string_view wav, const PcmPlace& place);

}  // namespace transept
