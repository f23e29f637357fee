// What the tests of this folder share: the fixtures of tools/make_audio_fixtures.py, the clips of ../shared, and files
// that are put together by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "base/json.h"
#include "base/source_dir_testing.h"
#include "base/strings.h"
#include "media/audio_reader.h"

namespace transept {

inline std::string fixture_path(std::string_view name) { return str_cat(source_dir(), "/src/media/testdata/", name); }

// Beside the repository; TRANSEPT_SHARED says where else.
inline std::string shared_path(std::string_view name) {
  const char* elsewhere = std::getenv("TRANSEPT_SHARED");
  return elsewhere != nullptr ? str_cat(elsewhere, "/", name) : str_cat(source_dir(), "/../shared/", name);
}

// (major, minor) of the FFmpeg that decodes: the fixtures are 5.1's. {0, 0} without one.
inline std::pair<int, int> ffmpeg_release() {
  const std::string version = audio_decoders_version();
  const size_t digit = version.find_first_of("0123456789");
  if (digit == std::string::npos) return {0, 0};
  char* end = nullptr;
  const auto major = static_cast<int>(std::strtol(version.c_str() + digit, &end, 10));
  return {major, *end == '.' ? static_cast<int>(std::strtol(end + 1, nullptr, 10)) : 0};
}

// It ends where a chained file's next link has another rate or other channels, and says so in the warning.
inline bool refuses_other_links() { return ffmpeg_release() >= std::pair(8, 1); }

inline std::string file_text(const std::string& path) {
  StatusOr<std::string> text = read_file(path);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? std::move(text).value() : std::string();
}

inline std::vector<Json> read_jsonl(const std::string& path) {
  const std::string text = file_text(path);
  std::vector<Json> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    StatusOr<Json> json = Json::parse(line);
    EXPECT_TRUE(json.ok()) << json.status();
    if (json.ok()) lines.push_back(std::move(json).value());
  }
  return lines;
}

inline StatusOr<std::unique_ptr<AudioReader>> open_text(std::string content, const AudioReader::Options& options = {}) {
  return AudioReader::open(AudioBytes::from_string(std::move(content)), options);
}

// All samples of a file's content. Errors of opening and of reading alike.
inline StatusOr<std::vector<float>> decode_text(std::string content, const AudioReader::Options& options = {}) {
  ASSIGN_OR_RETURN(const std::unique_ptr<AudioReader> reader, open_text(std::move(content), options));
  return read_all(*reader);
}

inline std::vector<float> decode_file(const std::string& path) {
  StatusOr<std::vector<float>> samples = decode_text(file_text(path));
  EXPECT_TRUE(samples.ok()) << path << ": " << samples.status();
  return samples.ok() ? std::move(samples).value() : std::vector<float>();
}

// Numbers as a file's bytes, the lowest byte first.
inline std::string little(uint64_t value, int num_bytes) {
  std::string bytes;
  for (int i = 0; i < num_bytes; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

struct WavHeader {
  uint32_t format = 1;  // 1: integers, 3: floats
  uint32_t channels = 1;
  uint32_t rate = 16000;
  uint32_t bits = 16;
};

inline std::string make_wav(const WavHeader& header, std::string_view data) {
  const uint32_t frame = header.channels * header.bits / 8;
  return str_cat("RIFF", little(36 + data.size(), 4), "WAVEfmt ", little(16, 4), little(header.format, 2),
                 little(header.channels, 2), little(header.rate, 4), little(uint64_t{header.rate} * frame, 4),
                 little(frame, 2), little(header.bits, 2), "data", little(data.size(), 4), data);
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace transept
