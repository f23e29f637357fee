#include "media/audio_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "media/ffmpeg.h"
#include "media/ffmpeg_input.h"
#include "media/ffmpeg_resampler.h"
#include "media/sinc_resampler.h"
#include "media/wav_input.h"

namespace transept {
namespace {

constexpr int kSliceSamples = 4096;   // converted at a time, so that no frame upsampled takes much memory
constexpr double kHeaderSlack = 1.0;  // seconds by which honest headers are off
constexpr float kMaxRawMagnitude = 32768;

Status check_options(const AudioReader::Options& options) {
  if (options.sampling_rate < kMinSamplingRate || options.sampling_rate > kMaxSamplingRate) {
    return invalid_argument("a sampling rate of ", options.sampling_rate, " Hz cannot be had");
  }
  if (!(options.max_seconds > 0)) return invalid_argument("the limit of ", options.max_seconds, " s leaves no audio");
  return ok_status();
}

// Lengths for people: tenths of a second.
double shown(double seconds) { return std::round(seconds * 10) / 10; }

Status too_long(double seconds, double max_seconds) {
  return invalid_argument("lasts ", shown(seconds), " s; the limit is ", max_seconds, " s");
}

Status check_samples(const AudioSamples& audio) {
  if (audio.sampling_rate() < kMinSamplingRate || audio.sampling_rate() > kMaxSamplingRate) {
    return field_error("sampling_rate", str_cat("must be ", kMinSamplingRate, " to ", kMaxSamplingRate, " Hz, is ",
                                                audio.sampling_rate()));
  }
  if (audio.samples().empty()) return field_error("samples", "is empty");
  for (size_t i = 0; i < audio.samples().size(); ++i) {
    const float x = audio.samples()[i];
    if (!std::isfinite(x)) return field_error(str_cat("samples[", i, "]"), "is not a finite number");
    if (std::abs(x) > kMaxRawMagnitude) {
      return field_error(str_cat("samples[", i, "]"),
                         str_cat("is ", x, "; full scale is 1, and no more than 32768 is taken"));
    }
  }
  return ok_status();
}

}  // namespace

class AudioReader::Impl {
 public:
  Impl(const Options& options, bool in_16_bit)
      : options_(options),
        max_samples_(std::min(9e15, std::floor(options.max_seconds * options.sampling_rate))),
        in_16_bit_(in_16_bit),
        resampler_(options.sampling_rate, in_16_bit) {}

  Status open(AudioBytes audio);
  Status open(AudioSamples audio);
  StatusOr<size_t> read(std::span<float> out);

  const AudioInfo& info() const { return info_; }
  double seconds_read() const { return static_cast<double>(num_read_) / options_.sampling_rate; }
  std::string warning() const;

 private:
  Status open_plain(AudioBytes audio);
  Status fill();
  Status fill_plain();
  Status convert_slice();
  Status next_block();
  Status check_length() const;

  Options options_;
  double max_samples_;
  bool in_16_bit_;
  AudioInfo info_;
  std::unique_ptr<FfmpegInput> input_;  // null: wav_ or raw_
  AudioSamples raw_;
  FfmpegResampler resampler_;

  // Without FFmpeg. Null: with it, or the samples pass unchanged.
  std::unique_ptr<WavInput> wav_;
  std::unique_ptr<SincResampler> plain_resampler_;

  SampleBlock block_;  // of input_'s frame or of raw_; from slice_begin_ on it is still to convert
  int slice_begin_ = 0;
  const uint8_t* raw_plane_ = nullptr;
  size_t raw_begin_ = 0;
  ChannelLayout mono_;
  AVChannelLayout frame_layout_{};  // a view of the frame's, as block_
  bool ended_ = false;

  std::vector<float> ready_;  // converted; from ready_begin_ on not yet read
  size_t ready_begin_ = 0;
  int64_t num_converted_ = 0;
  int64_t num_read_ = 0;
  Status error_;
};

Status AudioReader::Impl::open(AudioBytes audio) {
  // The answer without FFmpeg names what is missing, unless the file is one that needs none of it.
  if (!set_up_ffmpeg().ok() && is_wav(audio)) return open_plain(std::move(audio));
  ASSIGN_OR_RETURN(input_, FfmpegInput::open(std::move(audio)));
  info_ = input_->info();
  if (input_->duration_is_from_header() && info_.duration_seconds > options_.max_seconds + kHeaderSlack) {
    return too_long(info_.duration_seconds, options_.max_seconds);
  }
  RETURN_IF_ERROR(fill());
  if (!ready_.empty()) return ok_status();
  const std::string why = input_->warning();
  return invalid_argument("holds no sound", why.empty() ? "" : ": ", why);
}

Status AudioReader::Impl::open_plain(AudioBytes audio) {
  ASSIGN_OR_RETURN(wav_, WavInput::open(std::move(audio)));
  info_ = wav_->info();
  if (info_.duration_seconds > options_.max_seconds) return too_long(info_.duration_seconds, options_.max_seconds);
  plain_resampler_ = std::make_unique<SincResampler>(info_.sampling_rate, options_.sampling_rate);
  RETURN_IF_ERROR(fill());
  return ready_.empty() ? invalid_argument("holds no sound") : ok_status();
}

Status AudioReader::Impl::open(AudioSamples audio) {
  RETURN_IF_ERROR(check_samples(audio));
  raw_ = std::move(audio);
  if (raw_.sampling_rate() == options_.sampling_rate) {
    // Nothing to convert.
  } else if (set_up_ffmpeg().ok()) {
    mono_.set_default(1);
  } else {
    plain_resampler_ = std::make_unique<SincResampler>(raw_.sampling_rate(), options_.sampling_rate);
  }
  info_ = {.container = "samples", .codec = "float", .sampling_rate = raw_.sampling_rate(), .num_channels = 1};
  info_.duration_seconds = static_cast<double>(raw_.samples().size()) / raw_.sampling_rate();
  if (info_.duration_seconds > options_.max_seconds) return too_long(info_.duration_seconds, options_.max_seconds);
  return ok_status();
}

StatusOr<size_t> AudioReader::Impl::read(std::span<float> out) {
  RETURN_IF_ERROR(error_);
  size_t count = 0;
  while (count < out.size()) {
    if (ready_begin_ == ready_.size()) {
      error_ = fill();
      RETURN_IF_ERROR(error_);
      if (ready_.empty()) break;
    }
    const size_t part = std::min(out.size() - count, ready_.size() - ready_begin_);
    std::copy_n(ready_.begin() + static_cast<ptrdiff_t>(ready_begin_), part,
                out.begin() + static_cast<ptrdiff_t>(count));
    ready_begin_ += part;
    count += part;
  }
  num_read_ += static_cast<int64_t>(count);
  return count;
}

// Replaces ready_ by the samples that come next; none: the end.
Status AudioReader::Impl::fill() {
  ready_.clear();
  ready_begin_ = 0;
  while (ready_.empty() && !ended_) {
    if (plain_resampler_ != nullptr) {
      RETURN_IF_ERROR(fill_plain());
      continue;
    }
    if (slice_begin_ == block_.num_samples) RETURN_IF_ERROR(next_block());
    RETURN_IF_ERROR(ended_ ? resampler_.flush(ready_) : convert_slice());
  }
  num_converted_ += static_cast<int64_t>(ready_.size());
  return check_length();
}

// The same without FFmpeg: the input's next block at the output's rate, or the end.
Status AudioReader::Impl::fill_plain() {
  std::vector<float> block;
  if (wav_ != nullptr) {
    RETURN_IF_ERROR(wav_->next(block).status());
    ended_ = block.empty();
  } else {
    RETURN_IF_ERROR(next_block());
    const float* samples = reinterpret_cast<const float*>(raw_plane_);
    block.assign(samples, samples + block_.num_samples);
  }
  ended_ ? plain_resampler_->flush(ready_) : plain_resampler_->convert(block, ready_);
  for (float& x : ready_) {
    if (in_16_bit_) x = std::clamp(std::round(x * 32768.0f), -32768.0f, 32767.0f) / 32768.0f;
  }
  return ok_status();
}

Status AudioReader::Impl::convert_slice() {
  const int count = std::min(kSliceSamples, block_.num_samples - slice_begin_);
  const int begin = std::exchange(slice_begin_, slice_begin_ + count);
  if (input_ == nullptr && raw_.sampling_rate() == options_.sampling_rate) {
    const float* samples = reinterpret_cast<const float*>(raw_plane_) + begin;
    ready_.insert(ready_.end(), samples, samples + count);
    return ok_status();
  }
  return resampler_.convert(block_, begin, count, ready_);
}

// Points block_ at the next samples, or sets ended_.
Status AudioReader::Impl::next_block() {
  slice_begin_ = 0;
  block_ = {};
  if (input_ == nullptr) {
    constexpr size_t kBlock = size_t{1} << 20;
    const size_t count = std::min(kBlock, raw_.samples().size() - raw_begin_);
    ended_ = count == 0;
    raw_plane_ = reinterpret_cast<const uint8_t*>(raw_.samples().data() + raw_begin_);
    raw_begin_ += count;
    block_ = {&raw_plane_, static_cast<int>(count), AV_SAMPLE_FMT_FLT, raw_.sampling_rate(), mono_.get()};
    return ok_status();
  }
  ASSIGN_OR_RETURN(const AVFrame* frame, input_->next_frame());
  ended_ = frame == nullptr;
  if (ended_) return ok_status();
  frame_layout_ = frame_layout(*frame);
  block_ = {frame->extended_data, frame->nb_samples, static_cast<AVSampleFormat>(frame->format), frame_rate(*frame),
            &frame_layout_};
  return ok_status();
}

Status AudioReader::Impl::check_length() const {
  // Resampling may add a few samples to raw ones, whose number was checked.
  if ((input_ == nullptr && wav_ == nullptr) || static_cast<double>(num_converted_) <= max_samples_) {
    return ok_status();
  }
  if (input_ != nullptr && input_->duration_is_from_header() && info_.duration_seconds > options_.max_seconds) {
    return too_long(info_.duration_seconds, options_.max_seconds);
  }
  return invalid_argument("lasts more than ", options_.max_seconds, " s, which is the limit");
}

std::string AudioReader::Impl::warning() const {
  if (input_ == nullptr) return "";
  std::string words = input_->warning();
  const double there = static_cast<double>(num_converted_) / options_.sampling_rate;
  if (ended_ && input_->duration_is_from_header() && info_.duration_seconds > there + kHeaderSlack) {
    words += str_cat(words.empty() ? "" : "; ", "ends after ", shown(there), " s of the ",
                     shown(info_.duration_seconds), " s that its header promises");
  }
  return words;
}

AudioReader::AudioReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AudioReader::~AudioReader() = default;

StatusOr<std::unique_ptr<AudioReader>> AudioReader::open(AudioBytes audio, const Options& options) {
  RETURN_IF_ERROR(check_options(options));
  auto impl = std::make_unique<Impl>(options, /*in_16_bit=*/true);
  RETURN_IF_ERROR(impl->open(std::move(audio)));
  return std::unique_ptr<AudioReader>(new AudioReader(std::move(impl)));
}

StatusOr<std::unique_ptr<AudioReader>> AudioReader::from_samples(AudioSamples audio, const Options& options) {
  RETURN_IF_ERROR(check_options(options));
  auto impl = std::make_unique<Impl>(options, /*in_16_bit=*/false);
  RETURN_IF_ERROR(impl->open(std::move(audio)));
  return std::unique_ptr<AudioReader>(new AudioReader(std::move(impl)));
}

StatusOr<size_t> AudioReader::read(std::span<float> out) { return impl_->read(out); }

const AudioInfo& AudioReader::info() const { return impl_->info(); }

double AudioReader::seconds_read() const { return impl_->seconds_read(); }

std::string AudioReader::warning() const { return impl_->warning(); }

StatusOr<std::vector<float>> read_all(AudioReader& reader) {
  constexpr size_t kStep = size_t{1} << 16;
  std::vector<float> samples;
  for (;;) {
    const size_t before = samples.size();
    samples.resize(before + kStep);
    ASSIGN_OR_RETURN(const size_t count, reader.read(std::span(samples).subspan(before)));
    samples.resize(before + count);
    if (count < kStep) return samples;
  }
}

Status load_audio_decoders() { return set_up_ffmpeg(); }

std::string audio_decoders_version() { return set_up_ffmpeg().ok() ? ffmpeg_version() : ""; }

}  // namespace transept
