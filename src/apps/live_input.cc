#include "apps/live_input.h"

#include <algorithm>
#include <charconv>

#include "base/little_endian.h"
#include "speech/live_options.h"

namespace transept {
namespace {

constexpr int32_t kRawRate = 16000;
constexpr std::string_view kRemedy = "; ffmpeg -i INPUT -f s16le -ar 16000 -ac 1 - writes what is read here";
// Of the sound's length: what programs that write to a pipe put there (arecord 2 GiB, sox and ffmpeg all bits).
constexpr uint32_t kLeastUnknownBytes = 0x7FFF0000;
constexpr uint16_t kPcm = 1, kExtensible = 0xFFFE;

template <typename T>
T number_at(std::string_view bytes, size_t at) {
  return little_endian<T>(reinterpret_cast<const std::byte*>(bytes.data() + at));
}

bool is_rate(int64_t rate) { return rate >= kMinLiveRate && rate <= kMaxLiveRate; }

Status refuse(const auto&... parts) { return invalid_argument(parts..., kRemedy); }

// Containers that people pipe, by their first bytes.
std::string_view container_of(std::string_view head) {
  if (head.starts_with("OggS")) return "Ogg";
  if (head.starts_with("fLaC")) return "FLAC";
  if (head.starts_with("ID3")) return "MP3";
  if (head.starts_with("\x1A\x45\xDF\xA3")) return "WebM or Matroska";
  if (head.substr(0, 8).ends_with("ftyp")) return "MP4";
  if (head.starts_with("FORM")) return "AIFF";
  if (head.starts_with("RF64")) return "RF64";
  return "";
}

}  // namespace

StatusOr<LiveInput> LiveInput::create(std::string_view format) {
  LiveInput input;
  if (format == "auto") return input;
  constexpr std::string_view kPrefix = "s16le:";
  int32_t rate = 0;
  if (format.starts_with(kPrefix)) {
    const std::string_view digits = format.substr(kPrefix.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rate);
    if (error != std::errc() || end != digits.data() + digits.size()) rate = 0;
  }
  if (!is_rate(rate)) {
    return invalid_argument("auto, or s16le:RATE with ", kMinLiveRate, " to ", kMaxLiveRate, " hertz");
  }
  input.state_ = State::kSamples;
  input.sampling_rate_ = rate;
  return input;
}

Status LiveInput::feed(std::string_view bytes, std::vector<int16_t>& samples) {
  if (state_ == State::kBehind) return ok_status();
  bytes_.append(bytes);
  if (state_ == State::kUnknown) RETURN_IF_ERROR(look());
  if (state_ == State::kWavHead) RETURN_IF_ERROR(read_wav_head());
  if (state_ == State::kSamples) take_samples(samples);
  return ok_status();
}

// Whether it is a WAV file, once the bytes that say so are there.
Status LiveInput::look() {
  constexpr size_t kWanted = 12;  // "RIFF", a length, "WAVE"
  if (bytes_.size() < kWanted) return ok_status();
  if (const std::string_view container = container_of(bytes_); !container.empty()) {
    return refuse("standard input is ", container, ", and live audio is raw samples or WAV");
  }
  if (bytes_.starts_with("RIFF") && std::string_view(bytes_).substr(8, 4) == "WAVE") {
    bytes_.erase(0, kWanted);
    state_ = State::kWavHead;
  } else {
    state_ = State::kSamples;
    sampling_rate_ = kRawRate;
  }
  return ok_status();
}

// Chunks up to the sound's. Source: Multimedia Programming Interface and Data Specifications 1.0 (IBM, Microsoft).
Status LiveInput::read_wav_head() {
  constexpr size_t kChunkHead = 8;
  while (bytes_.size() >= kChunkHead) {
    const std::string_view rest = bytes_;
    const std::string_view name = rest.substr(0, 4);
    const uint32_t size = number_at<uint32_t>(rest, 4);
    if (name == "data") {
      if (!sampling_rate_.has_value()) return refuse("standard input: a WAV file whose sound is before its format");
      if (size > 0 && size < kLeastUnknownBytes) num_bytes_left_ = size;
      bytes_.erase(0, kChunkHead);
      state_ = State::kSamples;
      return ok_status();
    }
    const uint64_t padded = uint64_t{size} + size % 2;  // chunks begin at even places
    if (num_head_bytes_ + kChunkHead + padded > kMaxHeadBytes) {
      return refuse("standard input: a WAV file with more than ", kMaxHeadBytes, " bytes before its sound");
    }
    if (rest.size() < kChunkHead + padded) return ok_status();
    if (name == "fmt ") RETURN_IF_ERROR(read_format(rest.substr(kChunkHead, size)));
    num_head_bytes_ += kChunkHead + padded;
    bytes_.erase(0, kChunkHead + padded);
  }
  return ok_status();
}

Status LiveInput::read_format(std::string_view chunk) {
  if (chunk.size() < 16) return refuse("standard input: a WAV file with a format of ", chunk.size(), " bytes");
  const auto field = [&](size_t at) { return number_at<uint16_t>(chunk, at); };
  const uint16_t tag = field(0), channels = field(2), bits = field(14);
  const uint32_t rate = number_at<uint32_t>(chunk, 4);
  const bool is_pcm = tag == kPcm || (tag == kExtensible && chunk.size() >= 26 && field(24) == kPcm);
  if (!is_pcm || channels != 1 || bits != 16) {
    return refuse("standard input: a WAV file of ", channels, channels == 1 ? " channel" : " channels", " with ", bits,
                  is_pcm ? " bits" : " bits, not PCM", "; live audio is mono in 16 bits");
  }
  if (!is_rate(rate)) {
    return refuse("standard input: a WAV file at ", rate, " hertz; live audio has ", kMinLiveRate, " to ",
                  kMaxLiveRate);
  }
  sampling_rate_ = static_cast<int32_t>(rate);
  return ok_status();
}

void LiveInput::take_samples(std::vector<int16_t>& samples) {
  size_t count = bytes_.size() / 2;
  if (num_bytes_left_.has_value()) count = static_cast<size_t>(std::min<uint64_t>(count, *num_bytes_left_ / 2));
  const size_t begin = samples.size();
  samples.resize(begin + count);
  for (size_t i = 0; i < count; ++i) {
    samples[begin + i] = number_at<int16_t>(bytes_, 2 * i);
  }
  bytes_.erase(0, 2 * count);
  if (!num_bytes_left_.has_value()) return;
  *num_bytes_left_ -= 2 * count;
  if (*num_bytes_left_ < 2) {
    state_ = State::kBehind;
    bytes_.clear();
  }
}

}  // namespace transept
