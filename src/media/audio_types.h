// What audio is before it is read: bytes of a file, or numbers; what its container says; and what is accepted. Values.
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

// Encoded audio, in memory or in a file, with its owner. Copies share it. Immutable, so thread-safe.
class AudioBytes final {
 public:
  AudioBytes() = default;  // of nothing
  // A view. `owner` null: the bytes outlive every reader of them.
  AudioBytes(std::shared_ptr<const void> owner, std::span<const uint8_t> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}
  // Opens the file, which is read while it is decoded, and never mapped: another process may truncate it. Errors as
  // InputFile::open; the message names the path.
  static StatusOr<AudioBytes> from_file(const std::string& path);
  static AudioBytes from_string(std::string content);

  size_t size() const;

  // Copies bytes [offset, offset + out.size()). REQUIRES: within size(). Errors: as InputFile::read, without the path.
  Status read(size_t offset, std::span<uint8_t> out) const;

 private:
  std::shared_ptr<const void> owner_;
  std::span<const uint8_t> bytes_;
  std::shared_ptr<const InputFile> file_;  // null: bytes_
};

// What the container says of its first audio track.
struct AudioInfo {
  std::string container;        // FFmpeg's name: "wav", "matroska,webm"; "samples" for raw samples
  std::string codec;            // FFmpeg's name: "pcm_s16le", "opus"; "float" for raw samples
  int32_t sampling_rate = 0;    // hertz, of the file
  int32_t num_channels = 0;     // of the file
  double duration_seconds = 0;  // by the header, or estimated from the bit rate; 0: unknown. Never trusted
};

// Samples that come as numbers instead of a file.
struct RawAudio {
  std::vector<float> samples;  // mono; full scale is 1
  int32_t sampling_rate = 0;   // hertz
};

}  // namespace transept
