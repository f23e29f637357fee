// The samples of `transept transcribe --live`, from the bytes of a stream that does not end: raw 16-bit samples, or a
// WAV file that is written while it is read. A value; used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace transept {

class LiveInput final {
 public:
  // `format`: "s16le:RATE", raw mono samples; or "auto": a WAV file if the bytes begin as one, else s16le:16000.
  // Errors: kInvalidArgument for another format, or a rate out of kMinLiveRate to kMaxLiveRate.
  static StatusOr<LiveInput> create(std::string_view format);

  // Takes bytes as they come, in any pieces, and appends the samples that are whole. Bytes behind a WAV file's sound
  // are dropped. Errors, which end the input: kInvalidArgument for a WAV file that is not mono, of 16 bits, at a rate
  // in range, or whose head is longer than kMaxHeadBytes; for another container. The message says what to do.
  Status feed(std::string_view bytes, std::vector<int16_t>& samples);

  // Hertz; nullopt until the bytes have told it.
  std::optional<int32_t> sampling_rate() const { return sampling_rate_; }

  static constexpr size_t kMaxHeadBytes = 1 << 20;

 private:
  enum class State : uint8_t { kUnknown, kWavHead, kSamples, kBehind };

  Status look();
  Status read_wav_head();
  Status read_format(std::string_view chunk);
  void take_samples(std::vector<int16_t>& samples);

  State state_ = State::kUnknown;
  std::optional<int32_t> sampling_rate_;
  std::string bytes_;                       // not yet used
  size_t num_head_bytes_ = 0;               // of a WAV head, used so far
  std::optional<uint64_t> num_bytes_left_;  // of the WAV's sound; nullopt: to the end of the stream
};

}  // namespace transept
