#include "speech/live_recording.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/check.h"

namespace transept {
namespace {

// What is kept is moved when so much before it is forgotten, unless all goes. Little, so that who says nothing passes
// over little memory.
constexpr int64_t kDropSamples = 8192;
constexpr size_t kMostSpareSamples = 65536;  // of room

void append_little_endian(std::string& out, uint32_t value, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace

void LiveRecording::append(std::span<const int16_t> samples) {
  samples_.insert(samples_.end(), samples.begin(), samples.end());
}

void LiveRecording::forget(int64_t position) {
  const int64_t count = std::clamp<int64_t>(position - begin_, 0, size());
  begin_ += count;
  dropped_ += count;
  if (dropped_ < std::min(kDropSamples, std::ssize(samples_))) return;
  samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(dropped_));
  dropped_ = 0;
  if (samples_.capacity() - samples_.size() > kMostSpareSamples) samples_ = std::vector<int16_t>(samples_);
}

AudioBytes LiveRecording::wav(int64_t begin, int64_t end, int32_t sampling_rate) const {
  constexpr int64_t kMostBytes = (int64_t{1} << 31) - 64;
  CHECK(begin_ <= begin && begin <= end && end <= this->end(), "samples ", begin, " to ", end, " of ", begin_, " to ",
        this->end());
  const int64_t num_bytes = 2 * (end - begin);
  CHECK(num_bytes < kMostBytes, num_bytes, " bytes");
  const auto rate = static_cast<uint32_t>(sampling_rate);
  std::string file;
  file.reserve(static_cast<size_t>(num_bytes) + 44);
  file += "RIFF";
  append_little_endian(file, static_cast<uint32_t>(36 + num_bytes), 4);
  file += "WAVEfmt ";
  append_little_endian(file, 16, 4);
  append_little_endian(file, 1, 2);  // PCM
  append_little_endian(file, 1, 2);  // channel
  append_little_endian(file, rate, 4);
  append_little_endian(file, 2 * rate, 4);
  append_little_endian(file, 2, 2);
  append_little_endian(file, 16, 2);  // bits
  file += "data";
  append_little_endian(file, static_cast<uint32_t>(num_bytes), 4);
  for (int64_t i = begin - begin_ + dropped_; i < end - begin_ + dropped_; ++i) {
    append_little_endian(file, static_cast<uint16_t>(samples_[static_cast<size_t>(i)]), 2);
  }
  return AudioBytes::from_string(std::move(file));
}

}  // namespace transept
