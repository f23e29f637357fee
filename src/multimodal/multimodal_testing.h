// What the tests of this folder share: audio as files hold it, folders of models, and JSON by its text.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/folder_testing.h"
#include "base/json.h"
#include "base/strings.h"
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

inline std::string base64_of(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) bits = bits << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
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
