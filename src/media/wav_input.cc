#include "media/wav_input.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/strings.h"

namespace transept {
namespace {

constexpr size_t kFramesAtATime = 65536;
constexpr int kMaxChunks = 1000;  // before the samples; editors write a handful
constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;
constexpr float kMaxMagnitude = 1024;  // as of FFmpeg's input: larger ones are no sound
constexpr std::string_view kWithoutFfmpeg = "without FFmpeg";

uint32_t little(const uint8_t* bytes, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value |= uint32_t{bytes[i]} << (8 * i);
  return value;
}

bool is_tag(const uint8_t* bytes, std::string_view tag) { return std::memcmp(bytes, tag.data(), tag.size()) == 0; }

template <typename T>
float float_sample(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return std::isnan(value) ? 0.0f : static_cast<float>(std::clamp(value, T{-kMaxMagnitude}, T{kMaxMagnitude}));
}

// One channel's sample, full scale 1. Integers are signed, but those of 8 bits.
float to_sample(const uint8_t* bytes, size_t size, bool is_float) {
  if (is_float) return size == 4 ? float_sample<float>(bytes) : float_sample<double>(bytes);
  if (size == 1) return static_cast<float>(int{bytes[0]} - 128) / 128.0f;
  const auto high = static_cast<int32_t>(little(bytes, static_cast<int>(size)) << (32 - 8 * size));
  return static_cast<float>(high) / 2147483648.0f;
}

}  // namespace

bool is_wav(const AudioBytes& audio) {
  uint8_t head[12];
  if (audio.size() < sizeof head || !audio.read(0, head).ok()) return false;
  return is_tag(head, "RIFF") && is_tag(head + 8, "WAVE");
}

StatusOr<std::unique_ptr<WavInput>> WavInput::open(AudioBytes audio) {
  if (!is_wav(audio)) return invalid_argument("is no WAV file");
  std::unique_ptr<WavInput> input(new WavInput);
  input->audio_ = std::move(audio);
  RETURN_IF_ERROR(input->read_chunks());
  return input;
}

// Finds the format and the samples, which come after it.
Status WavInput::read_chunks() {
  size_t offset = 12;
  for (int i = 0; i < kMaxChunks && offset + 8 <= audio_.size(); ++i) {
    uint8_t head[8];
    RETURN_IF_ERROR(audio_.read(offset, head));
    offset += sizeof head;
    // Files that were cut off, or written to a pipe, claim more than there is.
    const size_t size = std::min<size_t>(little(head + 4, 4), audio_.size() - offset);
    if (is_tag(head, "fmt ")) RETURN_IF_ERROR(read_format(offset, size));
    if (is_tag(head, "data")) {
      if (sample_bytes_ == 0) return invalid_argument("has samples before their format");
      const size_t frame = sample_bytes_ * static_cast<size_t>(info_.num_channels);
      const size_t num_frames = size / frame;
      position_ = offset;
      end_ = offset + num_frames * frame;
      info_.duration_seconds = static_cast<double>(num_frames) / info_.sampling_rate;
      return ok_status();
    }
    offset += size + size % 2;
  }
  return invalid_argument("holds no samples");
}

Status WavInput::read_format(size_t offset, size_t size) {
  uint8_t head[26] = {};
  if (size < 16) return invalid_argument("has a format of ", size, " bytes; it takes 16");
  RETURN_IF_ERROR(audio_.read(offset, std::span(head).first(std::min(size, sizeof head))));
  uint32_t format = little(head, 2);
  if (format == kExtensible) format = little(head + 24, 2);  // the first bytes of the GUID
  const uint32_t channels = little(head + 2, 2), rate = little(head + 4, 4), bits = little(head + 14, 2);
  is_float_ = format == kFloat;
  const bool is_known =
      format == kPcm ? bits == 8 || bits == 16 || bits == 24 || bits == 32 : is_float_ && (bits == 32 || bits == 64);
  if (!is_known) {
    return invalid_argument("has WAV's format ", format, " with ", bits, " bits, which is not read ", kWithoutFfmpeg);
  }
  if (channels < 1 || channels > 2) {
    return invalid_argument("has ", channels, " channels; one or two are read ", kWithoutFfmpeg);
  }
  if (rate < uint32_t{kMinSamplingRate} || rate > uint32_t{kMaxSamplingRate}) {
    return invalid_argument("has a sampling rate of ", rate, " Hz; accepted are ", kMinSamplingRate, " to ",
                            kMaxSamplingRate);
  }
  if (little(head + 12, 2) != channels * bits / 8) return invalid_argument("has frames of a size that is not its own");
  sample_bytes_ = bits / 8;
  info_.container = "wav";
  info_.codec = bits == 8 ? "pcm_u8" : str_cat("pcm_", is_float_ ? "f" : "s", bits, "le");
  info_.sampling_rate = static_cast<int32_t>(rate);
  info_.num_channels = static_cast<int32_t>(channels);
  return ok_status();
}

StatusOr<size_t> WavInput::next(std::vector<float>& out) {
  const auto channels = static_cast<size_t>(info_.num_channels);
  const size_t frame = sample_bytes_ * channels;
  const size_t count = std::min(kFramesAtATime, (end_ - position_) / frame);
  buffer_.resize(count * frame);
  RETURN_IF_ERROR(audio_.read(position_, buffer_));
  position_ += buffer_.size();
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* bytes = buffer_.data() + i * frame;
    float sum = 0;
    for (size_t c = 0; c < channels; ++c) sum += to_sample(bytes + c * sample_bytes_, sample_bytes_, is_float_);
    out.push_back(channels == 2 ? sum / 2 : sum);
  }
  return count;
}

}  // namespace transept
