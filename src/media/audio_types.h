// Audio before it is decoded: encoded bytes, raw samples, what the container says, and the accepted ranges. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "base/status.h"

namespace transept {

inline constexpr int32_t kMinSamplingRate = 1000;  // hertz
inline constexpr int32_t kMaxSamplingRate = 768000;
inline constexpr int32_t kMaxAudioChannels = 64;

// Encoded audio, in memory or in a file. Shares ownership of it with its copies. Immutable, so thread-safe.
class AudioBytes final {
 public:
  AudioBytes() = default;  // no bytes
  // A view; keeps `owner` alive. Null: the caller keeps the bytes alive for every reader.
  AudioBytes(std::shared_ptr<const void> owner, std::span<const uint8_t> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}
  // Opens a file. Readers read it while they decode and never map it, since another process may truncate it. Errors: as
  // InputFile::open; the message names the path.
  static StatusOr<AudioBytes> from_file(const std::string& path);
  static AudioBytes from_string(std::string content);

  size_t size() const;

  // Fills `out` with bytes [offset, offset + out.size()). REQUIRES: within size(). Errors: of a file as
  // InputFile::read, without the path.
  Status read(size_t offset, std::span<uint8_t> out) const;

 private:
  std::shared_ptr<const void> owner_;
  std::span<const uint8_t> bytes_;
  std::shared_ptr<const InputFile> file_;  // null: bytes_
};

// What the container says about its first audio track.
struct AudioInfo {
  std::string container;        // FFmpeg's name: "wav", "matroska,webm"; "samples" for raw samples
  std::string codec;            // FFmpeg's name: "pcm_s16le", "opus"; "float" for raw samples
  int32_t sampling_rate = 0;    // hertz, of the file
  int32_t num_channels = 0;     // of the file
  double duration_seconds = 0;  // by the header or from the bit rate; 0: unknown. Not to be trusted
};

// Samples as numbers instead of an encoded file.
struct RawAudio {
  std::vector<float> samples;  // mono; full scale is 1
  int32_t sampling_rate = 0;   // hertz
};

// The same as a view that shares its samples with its copies. Immutable, so thread-safe.
class AudioSamples final {
 public:
  AudioSamples() = default;  // no samples
  // Keeps `owner` alive. Null: the caller keeps the samples alive for every reader.
  AudioSamples(std::shared_ptr<const void> owner, std::span<const float> samples, int32_t sampling_rate)
      : owner_(std::move(owner)), samples_(samples), sampling_rate_(sampling_rate) {}
  AudioSamples(RawAudio raw) {  // NOLINT: samples are samples
    auto owner = std::make_shared<const std::vector<float>>(std::move(raw.samples));
    samples_ = *owner;
    owner_ = std::move(owner);
    sampling_rate_ = raw.sampling_rate;
  }

  std::span<const float> samples() const { return samples_; }
  int32_t sampling_rate() const { return sampling_rate_; }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const float> samples_;
  int32_t sampling_rate_ = 0;
};

}  // namespace transept
