// What the tests of this folder share: audio as files hold it, folders of models, and JSON by its text.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/base64.h"
#include "base/folder_testing.h"
#include "base/json.h"
#include "base/strings.h"
#include "media/header_font_testing.h"
#include "multimodal/registry.h"

namespace transept::testing {

inline Json json_of(std::string_view text) {
  StatusOr<Json> json = Json::parse(text);
  EXPECT_TRUE(json.ok()) << json.status() << ": " << text;
  return json.ok() ? std::move(json).value() : Json();
}

inline std::string little(uint64_t value, int num_bytes) {
  std::string bytes;
  for (int i = 0; i < num_bytes; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// 16-bit mono: a tone.
inline std::string wav_of(int64_t num_samples, uint32_t rate = 16000) {
  std::string data;
  for (int64_t i = 0; i < num_samples; ++i) {
    const auto sample = static_cast<int16_t>(std::lround(8000 * std::sin(static_cast<double>(i) * 0.17)));
    data += little(static_cast<uint16_t>(sample), 2);
  }
  return str_cat("RIFF", little(36 + data.size(), 4), "WAVEfmt ", little(16, 4), little(1, 2), little(1, 2),
                 little(rate, 4), little(uint64_t{rate} * 2, 4), little(2, 2), little(16, 2), "data",
                 little(data.size(), 4), data);
}

inline std::vector<float> samples_of_wav(std::string_view wav) {
  std::vector<float> samples;
  for (size_t i = 44; i + 1 < wav.size(); i += 2) {
    const auto sample = static_cast<int16_t>(static_cast<uint8_t>(wav[i]) | static_cast<uint8_t>(wav[i + 1]) << 8);
    samples.push_back(static_cast<float>(sample) / 32768);
  }
  return samples;
}

inline std::string base64_of(std::string_view bytes) { return encode_base64(bytes); }

// An RGB picture as a PNG file: one stored block a row (RFC 1950, 1951; PNG, sections 5 and 9).
inline std::string png_of(const RgbImage& image) {
  const auto big = [](uint64_t value, int num_bytes) {
    const std::string bytes = little(value, num_bytes);
    return std::string(bytes.rbegin(), bytes.rend());
  };
  const auto chunk = [&](std::string_view type, std::string_view data) {
    const std::string content = str_cat(type, data);
    uint32_t crc = ~0u;
    for (const char c : content) {
      crc ^= static_cast<uint8_t>(c);
      for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320u : 0);
    }
    return str_cat(big(data.size(), 4), content, big(~crc, 4));
  };
  const size_t row_bytes = static_cast<size_t>(image.width) * 3 + 1;
  std::string packed = "\x78\x01";
  uint32_t a = 1, b = 0;
  for (size_t y = 0; y < static_cast<size_t>(image.height); ++y) {
    std::string row(1, '\0');  // filter: none
    row.append(reinterpret_cast<const char*>(image.pixels.data()) + y * (row_bytes - 1), row_bytes - 1);
    const bool is_last = y + 1 == static_cast<size_t>(image.height);
    packed += str_cat(little(is_last, 1), little(row_bytes, 2), little(~row_bytes, 2), row);
    for (const char c : row) {
      a = (a + static_cast<uint8_t>(c)) % 65521;
      b = (b + a) % 65521;
    }
  }
  packed += big(b << 16 | a, 4);
  const std::string head = str_cat(big(static_cast<uint64_t>(image.width), 4),
                                   big(static_cast<uint64_t>(image.height), 4), std::string("\x08\x02\0\0\0", 5));
  return str_cat("\x89PNG\r\n\x1a\n", chunk("IHDR", head), chunk("IDAT", packed), chunk("IEND", ""));
}

// A model's folder: config.json as given, preprocessor_config.json unless it is "".
inline StatusOr<std::unique_ptr<MultiModalRegistry>> registry_of(std::string_view config,
                                                                 std::string_view preprocessor = "") {
  const TestFolder dir;
  dir.write("config.json", config);
  if (!preprocessor.empty()) dir.write("preprocessor_config.json", preprocessor);
  ASSIGN_OR_RETURN(const ModelConfig model, ModelConfig::load(dir.path()));
  return MultiModalRegistry::create(model);
}

// 0.16 s a window: 16 frames, 8 positions.
inline constexpr std::string_view kTinyWhisper =
    R"({"model_type": "whisper", "vocab_size": 10, "num_mel_bins": 5, "max_source_positions": 8})";
inline constexpr std::string_view kTinyFrontEnd = R"({"feature_size": 5, "n_samples": 2560})";
inline constexpr std::string_view kMoonshine = R"({"model_type": "moonshine", "vocab_size": 10})";

}  // namespace transept::testing
