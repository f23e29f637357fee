#include "media/ffmpeg_resampler.h"

#include "media/audio_types.h"

namespace transept {
namespace {

// Each may cost a filter bank. Joined recordings change a few times.
constexpr int kMaxConfigurations = 256;
// Up to 7.1 a number of channels means the same places everywhere.
constexpr int kMaxUsualChannels = 8;

}  // namespace

FfmpegResampler::FfmpegResampler(int sampling_rate, bool in_16_bit)
    : sampling_rate_(sampling_rate), in_16_bit_(in_16_bit) {}

Status FfmpegResampler::convert(const SampleBlock& block, int begin, int count, std::vector<float>& out) {
  RETURN_IF_ERROR(set_up_ffmpeg());
  const bool same = context_ != nullptr && block.format == format_ && block.sampling_rate == in_rate_ &&
                    layout_.equals(*block.layout);
  if (!same) {
    RETURN_IF_ERROR(flush(out));
    RETURN_IF_ERROR(configure(block));
  }
  const int channels = block.layout->nb_channels;
  const bool planar = ffmpeg().av_sample_fmt_is_planar(block.format) != 0;
  const int64_t offset = int64_t{begin} * ffmpeg().av_get_bytes_per_sample(block.format) * (planar ? 1 : channels);
  const uint8_t* planes[kMaxAudioChannels] = {};
  for (int i = 0; i < (planar ? channels : 1); ++i) planes[i] = block.planes[i] + offset;
  return run(planes, count, out);
}

Status FfmpegResampler::configure(const SampleBlock& block) {
  if (++num_configurations_ > kMaxConfigurations) {
    return invalid_argument("changes its sampling rate or channels more than ", kMaxConfigurations, " times");
  }
  const int channels = block.layout->nb_channels;
  if (!layout_.copy(*block.layout)) return resource_exhausted("no memory to resample with");
  format_ = block.format;
  in_rate_ = block.sampling_rate;

  ChannelLayout from, mono;
  from.set_default(channels);
  mono.set_default(1);
  if (block.layout->order != AV_CHANNEL_ORDER_UNSPEC && !from.copy(*block.layout)) {
    return resource_exhausted("no memory to resample with");
  }
  const auto out_format = in_16_bit_ ? AV_SAMPLE_FMT_S16 : AV_SAMPLE_FMT_FLT;
  // Channels whose places are not known, or have no rule, are mixed in equal parts. Newer releases have places for many
  // counts that older ones have none for (12 since FFmpeg 6, the fourth of which would not be heard): the file does not
  // say that it has these.
  const bool has_places = block.layout->order != AV_CHANNEL_ORDER_UNSPEC || channels <= kMaxUsualChannels;
  for (const bool equal_parts : {false, true}) {
    if (!equal_parts && !has_places) continue;
    SwrContext* context = nullptr;
    int code = ffmpeg().swr_alloc_set_opts2(&context, mono.get(), out_format, sampling_rate_, from.get(), format_,
                                            in_rate_, 0, nullptr);
    if (code >= 0 && equal_parts) {
      const std::vector<double> matrix(static_cast<size_t>(channels), 1.0 / channels);
      code = ffmpeg().swr_set_matrix(context, matrix.data(), channels);
    }
    if (code >= 0) code = ffmpeg().swr_init(context);
    context_.reset(context);
    if (code >= 0) return ok_status();
    context_.reset();
    if (equal_parts) return invalid_argument("cannot be mixed to one channel: ", ffmpeg_error(code));
  }
  return ok_status();
}

Status FfmpegResampler::run(const uint8_t** planes, int count, std::vector<float>& out) {
  const int most = ffmpeg().swr_get_out_samples(context_.get(), count);
  if (most < 0) return invalid_argument("cannot be resampled: ", ffmpeg_error(most));
  const size_t before = out.size();
  uint8_t* target = nullptr;
  if (in_16_bit_) {
    shorts_.resize(static_cast<size_t>(most));
    target = reinterpret_cast<uint8_t*>(shorts_.data());
  } else {
    out.resize(before + static_cast<size_t>(most));
    target = reinterpret_cast<uint8_t*>(out.data() + before);
  }
  const int given = ffmpeg().swr_convert(context_.get(), &target, most, planes, count);
  if (given < 0) {
    out.resize(before);
    return invalid_argument("cannot be resampled: ", ffmpeg_error(given));
  }
  out.resize(before + static_cast<size_t>(given));
  for (int i = 0; in_16_bit_ && i < given; ++i) {
    out[before + static_cast<size_t>(i)] = static_cast<float>(shorts_[static_cast<size_t>(i)]) / 32768.0f;
  }
  return ok_status();
}

Status FfmpegResampler::flush(std::vector<float>& out) {
  if (context_ == nullptr) return ok_status();
  for (size_t before = out.size() + 1; before != out.size();) {
    before = out.size();
    RETURN_IF_ERROR(run(nullptr, 0, out));
  }
  context_.reset();
  return ok_status();
}

}  // namespace transept
