#include "load/unique_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/strings.h"

namespace transept {
namespace {

std::string little_endian(uint32_t value, int num_bytes) {
  std::string out;
  for (int i = 0; i < num_bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

std::string chunk(std::string_view name, std::string_view content) {
  return str_cat(name, little_endian(static_cast<uint32_t>(content.size()), 4), content, content.size() % 2 ? "x" : "");
}

std::string format_chunk(uint32_t format, uint32_t bits) {
  return chunk("fmt ", little_endian(format, 2) + little_endian(1, 2) + little_endian(16000, 4) +
                           little_endian(16000 * bits / 8, 4) + little_endian(bits / 8, 2) + little_endian(bits, 2));
}

std::string wav_of(std::string_view chunks) { return "RIFF" + chunk("", str_cat("WAVE", chunks)); }

int16_t sample_at(std::string_view bytes, size_t at) {
  return static_cast<int16_t>(static_cast<uint8_t>(bytes[at]) | static_cast<uint8_t>(bytes[at + 1]) << 8);
}

TEST(UniqueInputsTest, NoNumberComesTwice) {
  constexpr int64_t kCount = 1 << 16;
  std::set<uint32_t> numbers;
  for (int64_t i = 0; i < kCount; ++i) numbers.insert(unique_number(3, i * 512));  // over the whole range of indices
  EXPECT_EQ(numbers.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(unique_number(3, 5), unique_number(3, 5));
  EXPECT_NE(unique_number(3, 5), unique_number(4, 5));
}

TEST(UniqueInputsTest, PromptsDifferFromTheirFirstWordOn) {
  std::set<std::string> first_words, rests;
  for (int64_t i = 0; i < 1000; ++i) {
    const std::string prompt = unique_prompt(0, i, 12);
    EXPECT_EQ(split(prompt, ' ').size(), 12u) << prompt;
    first_words.insert(prompt.substr(0, prompt.find(' ')));
    rests.insert(prompt.substr(prompt.find(' ')));
  }
  EXPECT_EQ(first_words.size(), 1000u);
  EXPECT_EQ(rests.size(), 1000u);
  EXPECT_EQ(unique_prompt(0, 7, 12), unique_prompt(0, 7, 12));
  EXPECT_EQ(unique_prompt(0, 7, 1), str_cat(unique_number(0, 7)));
}

TEST(UniqueInputsTest, LengthsCoverTheirRange) {
  std::set<int64_t> lengths;
  for (int64_t i = 0; i < 1000; ++i) lengths.insert(drawn_length(1, i, 10, 14));
  EXPECT_EQ(lengths, (std::set<int64_t>{10, 11, 12, 13, 14}));
  EXPECT_EQ(drawn_length(1, 0, 9, 9), 9);
}

TEST(UniqueInputsTest, NoiseIsQuietAndOnTheSamplesAlone) {
  std::string samples;
  for (int i = 0; i < 16000; ++i) samples += little_endian(static_cast<uint32_t>(i * 37), 2);  // every height
  samples += "\xFF\x7F" + std::string("\x00\x80", 2);                                          // the loudest ones
  const std::string head = format_chunk(1, 16) + chunk("LIST", "odd");
  const std::string wav = wav_of(head + chunk("data", samples) + chunk("tail", "after"));
  const std::optional<PcmPlace> place = find_pcm16(wav);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->num_bytes, samples.size());
  EXPECT_NEAR(place->seconds, 1.0, 0.001);

  const std::string noisy = noisy_wav(5, 1, wav, *place);
  ASSERT_EQ(noisy.size(), wav.size());
  EXPECT_EQ(noisy.substr(0, place->offset), wav.substr(0, place->offset));
  EXPECT_EQ(noisy.substr(place->offset + place->num_bytes), wav.substr(place->offset + place->num_bytes));
  int num_changed = 0;
  for (size_t at = place->offset; at < place->offset + place->num_bytes; at += 2) {
    const int change = sample_at(noisy, at) - sample_at(wav, at);
    ASSERT_LE(std::abs(change), 2) << at;  // and none wrapped around
    num_changed += change != 0 ? 1 : 0;
  }
  EXPECT_GT(num_changed, 8000);
  EXPECT_EQ(noisy, noisy_wav(5, 1, wav, *place));
  EXPECT_NE(noisy, noisy_wav(5, 2, wav, *place));
  EXPECT_NE(noisy, noisy_wav(6, 1, wav, *place));
}

TEST(UniqueInputsTest, FilesThatAreNoPcm16AreLeftAlone) {
  const std::string data = chunk("data", "abcd");
  ASSERT_TRUE(find_pcm16(wav_of(format_chunk(1, 16) + data)).has_value());
  for (const std::string& wav :
       {std::string(), std::string("RIFF"), std::string("ID3 and then music, no RIFF at all"), wav_of(""),
        wav_of(format_chunk(3, 32) + data), wav_of(format_chunk(1, 24) + data), wav_of(data),
        wav_of(format_chunk(1, 16)), wav_of(format_chunk(1, 16) + chunk("data", "")),
        wav_of(chunk("fmt ", "short") + data), wav_of(format_chunk(1, 16)).substr(0, 30)}) {
    EXPECT_FALSE(find_pcm16(wav).has_value()) << wav;
  }
  // Recorders that stream leave sizes that are too large: what is there counts.
  std::string cut = wav_of(format_chunk(1, 16) + "data" + little_endian(0xFFFFFFFF, 4) + "abcd");
  cut += 'e';  // half a sample
  ASSERT_TRUE(find_pcm16(cut).has_value());
  EXPECT_EQ(find_pcm16(cut)->num_bytes, 4u);
}

}  // namespace
}  // namespace transept
