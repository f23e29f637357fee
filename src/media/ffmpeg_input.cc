#include "media/ffmpeg_input.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace transept {
namespace {

// Containers by the names of FFmpeg's demuxers. None of them opens another file.
constexpr char kContainers[] = "wav,w64,aiff,au,caf,flac,mp3,aac,ogg,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm";

constexpr AVCodecID kCodecs[] = {
    AV_CODEC_ID_PCM_U8,       AV_CODEC_ID_PCM_S8,       AV_CODEC_ID_PCM_S16LE,     AV_CODEC_ID_PCM_S16BE,
    AV_CODEC_ID_PCM_U16LE,    AV_CODEC_ID_PCM_U16BE,    AV_CODEC_ID_PCM_S24LE,     AV_CODEC_ID_PCM_S24BE,
    AV_CODEC_ID_PCM_U24LE,    AV_CODEC_ID_PCM_U24BE,    AV_CODEC_ID_PCM_S32LE,     AV_CODEC_ID_PCM_S32BE,
    AV_CODEC_ID_PCM_U32LE,    AV_CODEC_ID_PCM_U32BE,    AV_CODEC_ID_PCM_S64LE,     AV_CODEC_ID_PCM_S64BE,
    AV_CODEC_ID_PCM_F32LE,    AV_CODEC_ID_PCM_F32BE,    AV_CODEC_ID_PCM_F64LE,     AV_CODEC_ID_PCM_F64BE,
    AV_CODEC_ID_PCM_ALAW,     AV_CODEC_ID_PCM_MULAW,    AV_CODEC_ID_ADPCM_IMA_WAV, AV_CODEC_ID_ADPCM_MS,
    AV_CODEC_ID_ADPCM_IMA_QT, AV_CODEC_ID_ADPCM_YAMAHA, AV_CODEC_ID_ADPCM_G722,    AV_CODEC_ID_ADPCM_G726,
    AV_CODEC_ID_ADPCM_SWF,    AV_CODEC_ID_FLAC,         AV_CODEC_ID_MP3,           AV_CODEC_ID_MP2,
    AV_CODEC_ID_AAC,          AV_CODEC_ID_ALAC,         AV_CODEC_ID_OPUS,          AV_CODEC_ID_VORBIS,
};

constexpr int kMaxTracks = 32;                 // each may cost FFmpeg an index of 64 MiB
constexpr int64_t kMaxProbeBytes = 1 << 20;    // to tell the container
constexpr int64_t kMaxAnalyseBytes = 5 << 20;  // to learn the parameters of the tracks
constexpr int kIoBufferBytes = 1 << 16;
constexpr int64_t kMaxRereads = 16;           // a file is read at most so often over ...
constexpr int64_t kFreeReadBytes = 16 << 20;  // ... and small ones this much
constexpr int64_t kMaxSilentSteps = 200'000;  // packets more than frames: damaged or skipped ones, hours of them

// Floats beyond this are no sound (full scale is 1), and larger ones would overflow where they become integers.
constexpr float kMaxMagnitude = 1024;

// Of kCodecs, which are 5.1's ids, in the FFmpeg that is loaded.
AVCodecID loaded_id(AVCodecID id) {
  if (id != AV_CODEC_ID_PCM_S64LE && id != AV_CODEC_ID_PCM_S64BE) return id;
  return static_cast<AVCodecID>(ffmpeg().release->pcm_s64le + (id == AV_CODEC_ID_PCM_S64BE));
}

bool is_accepted(AVCodecID id) {
  return std::any_of(std::begin(kCodecs), std::end(kCodecs), [&](AVCodecID known) { return loaded_id(known) == id; });
}

// The decoders of kCodecs by name, for FFmpeg itself to hold to as well.
std::string decoder_names() {
  std::string names;
  for (const AVCodecID id : kCodecs) {
    if (const AVCodec* decoder = ffmpeg().avcodec_find_decoder(loaded_id(id)))
      names += str_cat(names.empty() ? "" : ",", decoder->name);
  }
  return names;
}

int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) { return AVERROR(EACCES); }

template <typename T>
void make_finite(T* samples, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const T x = samples[i];
    samples[i] = std::isnan(x) ? T{0} : std::clamp(x, T{-kMaxMagnitude}, T{kMaxMagnitude});
  }
}

// Packed or planar samples of a frame, as many as there are in a plane.
template <typename T>
void make_finite(AVFrame& frame) {
  const auto format = static_cast<AVSampleFormat>(frame.format);
  const int channels = frame_channels(frame);
  const int planes = ffmpeg().av_sample_fmt_is_planar(format) ? channels : 1;
  for (int i = 0; i < planes; ++i) {
    make_finite(reinterpret_cast<T*>(frame.extended_data[i]), int64_t{frame.nb_samples} * (channels / planes));
  }
}

}  // namespace

struct FfmpegInput::ByteSource {
  AudioBytes audio;
  int64_t position = 0;
  int64_t bytes_left_to_read = 0;
  Status failure;  // stays: why nothing is read any more

  int64_t size() const { return static_cast<int64_t>(audio.size()); }

  static int read(void* self, uint8_t* out, int size) {
    auto& source = *static_cast<ByteSource*>(self);
    if (!source.failure.ok()) return AVERROR_EXIT;
    const int64_t count = std::min<int64_t>(size, source.size() - source.position);
    if (count <= 0) return AVERROR_EOF;
    if (count > source.bytes_left_to_read) {
      source.failure = invalid_argument("has its contents read again and again by its own index");
      return AVERROR_EXIT;
    }
    source.failure =
        source.audio.read(static_cast<size_t>(source.position), std::span(out, static_cast<size_t>(count)));
    if (!source.failure.ok()) return AVERROR_EXIT;
    source.position += count;
    source.bytes_left_to_read -= count;
    return static_cast<int>(count);
  }

  static int64_t seek(void* self, int64_t offset, int whence) {
    auto& source = *static_cast<ByteSource*>(self);
    if (whence & AVSEEK_SIZE) return source.size();
    int64_t target = offset;  // offset comes from the file: no sum of it may overflow
    whence &= ~AVSEEK_FORCE;
    if (whence == SEEK_CUR && __builtin_add_overflow(offset, source.position, &target)) return AVERROR(EINVAL);
    if (whence == SEEK_END && __builtin_add_overflow(offset, source.size(), &target)) return AVERROR(EINVAL);
    if (target < 0) return AVERROR(EINVAL);
    source.position = std::min(target, source.size());
    return target;
  }
};

FfmpegInput::FfmpegInput() = default;

FfmpegInput::~FfmpegInput() = default;

StatusOr<std::unique_ptr<FfmpegInput>> FfmpegInput::open(AudioBytes audio) {
  RETURN_IF_ERROR(set_up_ffmpeg());
  if (audio.size() == 0) return invalid_argument("is empty (0 bytes)");
  std::unique_ptr<FfmpegInput> input(new FfmpegInput);
  input->packet_.reset(ffmpeg().av_packet_alloc());
  input->frame_.reset(ffmpeg().av_frame_alloc());
  if (input->packet_ == nullptr || input->frame_ == nullptr) return resource_exhausted("no memory to decode with");
  RETURN_IF_ERROR(input->open_container(std::move(audio)));
  RETURN_IF_ERROR(input->choose_track());
  RETURN_IF_ERROR(input->open_decoder());
  input->read_info();
  return input;
}

Status FfmpegInput::open_container(AudioBytes audio) {
  source_ = std::make_unique<ByteSource>();
  source_->audio = std::move(audio);
  source_->bytes_left_to_read = kMaxRereads * source_->size() + kFreeReadBytes;
  auto* buffer = static_cast<unsigned char*>(ffmpeg().av_malloc(kIoBufferBytes));
  if (buffer == nullptr) return resource_exhausted("no memory to read with");
  io_.reset(ffmpeg().avio_alloc_context(buffer, kIoBufferBytes, 0, source_.get(), ByteSource::read, nullptr,
                                        ByteSource::seek));
  AVFormatContext* context = ffmpeg().avformat_alloc_context();
  if (io_ == nullptr || context == nullptr) {
    if (io_ == nullptr) ffmpeg().av_free(buffer);
    ffmpeg().avformat_free_context(context);
    return resource_exhausted("no memory to read with");
  }

  // The content alone tells the container: a name may lie, and no playlist is followed because of one.
  const AVInputFormat* format = nullptr;
  const int score = ffmpeg().av_probe_input_buffer2(io_.get(), &format, "", nullptr, 0, kMaxProbeBytes);
  if (score < 0 || format == nullptr) {
    ffmpeg().avformat_free_context(context);
    RETURN_IF_ERROR(source_->failure);
    return invalid_argument("is no audio: no known container begins like this");
  }
  if (ffmpeg().av_match_list(format->name, kContainers, ',') <= 0) {
    ffmpeg().avformat_free_context(context);
    return invalid_argument("looks like '", format->name, "', which is not accepted as audio");
  }
  info_.container = format->name;

  context->pb = io_.get();
  const FfmpegRelease::Format& fields = ffmpeg().release->format;
  field<int>(context, fields.flags) |= AVFMT_FLAG_CUSTOM_IO;
  field<decltype(context->io_open)>(context, fields.io_open) = refuse_to_open;
  field<int>(context, fields.max_streams) = kMaxTracks;
  field<int64_t>(context, fields.probesize) = kMaxAnalyseBytes;
  AVDictionary* settings = nullptr;
  ffmpeg().av_dict_set(&settings, "format_whitelist", kContainers, 0);
  ffmpeg().av_dict_set(&settings, "codec_whitelist", decoder_names().c_str(), 0);
  ffmpeg().av_dict_set(&settings, "protocol_whitelist", "none", 0);
  const int opened = ffmpeg().avformat_open_input(&context, "", format, &settings);  // frees context when it fails
  ffmpeg().av_dict_free(&settings);
  if (opened < 0) {
    RETURN_IF_ERROR(source_->failure);
    return invalid_argument("cannot be read as ", info_.container, ": ", ffmpeg_error(opened));
  }
  container_.reset(context);
  return ok_status();
}

Status FfmpegInput::choose_track() {
  const int analysed = ffmpeg().avformat_find_stream_info(container_.get(), nullptr);
  RETURN_IF_ERROR(source_->failure);
  const FfmpegRelease::Stream& fields = ffmpeg().release->stream;
  for (unsigned i = 0; i < container_->nb_streams; ++i) {
    AVStream* track = container_->streams[i];
    if (track_ == nullptr && field<AVCodecParameters*>(track, fields.codecpar)->codec_type == AVMEDIA_TYPE_AUDIO) {
      track_ = track;
    } else {
      field<AVDiscard>(track, fields.discard) = AVDISCARD_ALL;
    }
  }
  if (track_ == nullptr) {
    if (analysed < 0) return invalid_argument("cannot be read as ", info_.container, ": ", ffmpeg_error(analysed));
    return invalid_argument("holds no audio track");
  }
  return ok_status();
}

Status FfmpegInput::open_decoder() {
  const FfmpegRelease& release = *ffmpeg().release;
  const AVCodecParameters& parameters = *field<AVCodecParameters*>(track_, release.stream.codecpar);
  info_.codec = ffmpeg().avcodec_get_name(parameters.codec_id);
  if (parameters.codec_id == AV_CODEC_ID_NONE) return invalid_argument("holds audio in a coding that is not known");
  if (!is_accepted(parameters.codec_id)) {
    return invalid_argument("holds audio coded as '", info_.codec, "', which is not accepted");
  }
  const AVCodec* codec = ffmpeg().avcodec_find_decoder(parameters.codec_id);
  if (codec == nullptr) return unimplemented("this build of FFmpeg does not decode '", info_.codec, "'");
  const int rate = field<int>(&parameters, release.parameters.sample_rate);
  if (rate != 0 && (rate < kMinSamplingRate || rate > kMaxSamplingRate)) {
    return invalid_argument("has a sampling rate of ", rate, " Hz; accepted are ", kMinSamplingRate, " to ",
                            kMaxSamplingRate);
  }
  const int channels = field<int>(&parameters, release.parameters.num_channels);
  if (channels < 0 || channels > kMaxAudioChannels) {
    return invalid_argument("has ", channels, " channels; accepted are 1 to ", kMaxAudioChannels);
  }
  decoder_.reset(ffmpeg().avcodec_alloc_context3(codec));
  if (decoder_ == nullptr) return resource_exhausted("no memory to decode with");
  int code = ffmpeg().avcodec_parameters_to_context(decoder_.get(), &parameters);
  field<AVRational>(decoder_.get(), release.codec.pkt_timebase) = field<AVRational>(track_, release.stream.time_base);
  field<int>(decoder_.get(), release.codec.thread_count) = 1;
  if (code >= 0) code = ffmpeg().avcodec_open2(decoder_.get(), codec, nullptr);
  if (code < 0) return invalid_argument("cannot be decoded as ", info_.codec, ": ", ffmpeg_error(code));
  return ok_status();
}

void FfmpegInput::read_info() {
  const FfmpegRelease& release = *ffmpeg().release;
  info_.sampling_rate = field<int>(decoder_.get(), release.codec.sample_rate);
  info_.num_channels = field<int>(decoder_.get(), release.codec.num_channels);
  const auto of_track = field<int64_t>(track_, release.stream.duration);
  const auto of_container = field<int64_t>(container_.get(), release.format.duration);
  if (of_track != AV_NOPTS_VALUE) {
    info_.duration_seconds =
        static_cast<double>(of_track) * av_q2d(field<AVRational>(track_, release.stream.time_base));
  } else if (of_container != AV_NOPTS_VALUE) {
    info_.duration_seconds = static_cast<double>(of_container) / AV_TIME_BASE;
  }
  duration_is_from_header_ =
      field<AVDurationEstimationMethod>(container_.get(), release.format.duration_estimation_method) !=
      AVFMT_DURATION_FROM_BITRATE;
  // Headers of streams that were never closed claim gigabytes. Where the size of a sample is fixed, the file's own size
  // says how much there can be.
  const double bits = ffmpeg().av_get_exact_bits_per_sample(decoder_->codec_id);
  if (bits > 0 && info_.sampling_rate > 0 && info_.num_channels > 0) {
    const double most = static_cast<double>(source_->size()) * 8 / (bits * info_.sampling_rate * info_.num_channels);
    info_.duration_seconds = std::min(info_.duration_seconds, most);
  }
  if (!std::isfinite(info_.duration_seconds) || info_.duration_seconds < 0) info_.duration_seconds = 0;
}

StatusOr<AVFrame*> FfmpegInput::next_frame() {
  for (;;) {
    ffmpeg().av_frame_unref(frame_.get());
    const int received = ffmpeg().avcodec_receive_frame(decoder_.get(), frame_.get());
    if (received == AVERROR_EOF || (received == AVERROR(EAGAIN) && draining_)) return nullptr;
    if (received == AVERROR(EAGAIN)) {
      RETURN_IF_ERROR(send_packet());
    } else if (received < 0) {
      ++num_damaged_;
    } else if (frame_->nb_samples > 0) {
      if (accept_frame()) {
        num_silent_steps_ = std::max<int64_t>(0, num_silent_steps_ - 1);
        return frame_.get();
      }
      ++num_damaged_;
    }
  }
}

// Gives the decoder the track's next packet, or the end.
Status FfmpegInput::send_packet() {
  ffmpeg().av_packet_unref(packet_.get());
  const int code = ffmpeg().av_read_frame(container_.get(), packet_.get());
  RETURN_IF_ERROR(source_->failure);
  if (code >= 0 && packet_->stream_index != field<int>(track_, ffmpeg().release->stream.index)) return ok_status();
  if (++num_silent_steps_ > kMaxSilentSteps) {
    return invalid_argument("has more than ", kMaxSilentSteps, " packets that hold no sound");
  }
  if (code == AVERROR(EAGAIN)) return ok_status();
  if (code < 0) {
    if (code != AVERROR_EOF) end_error_ = code;
    draining_ = true;
    ffmpeg().avcodec_send_packet(decoder_.get(), nullptr);
    return ok_status();
  }
  const int sent = ffmpeg().avcodec_send_packet(decoder_.get(), packet_.get());
  if (sent < 0) ++num_damaged_;
  return ok_status();
}

// Whether the decoder's frame is one that may go on; its floats are made finite.
bool FfmpegInput::accept_frame() {
  AVFrame& frame = *frame_;
  const int rate = frame_rate(frame), channels = frame_channels(frame);
  if (rate < kMinSamplingRate || rate > kMaxSamplingRate) return false;
  if (channels < 1 || channels > kMaxAudioChannels) return false;
  const AVSampleFormat format = ffmpeg().av_get_packed_sample_fmt(static_cast<AVSampleFormat>(frame.format));
  if (format != AV_SAMPLE_FMT_FLT && format != AV_SAMPLE_FMT_DBL) return true;
  if (ffmpeg().av_frame_make_writable(&frame) < 0) return false;
  format == AV_SAMPLE_FMT_FLT ? make_finite<float>(frame) : make_finite<double>(frame);
  return true;
}

std::string FfmpegInput::warning() const {
  std::string words;
  if (num_damaged_ > 0) {
    words = str_cat(num_damaged_, num_damaged_ == 1 ? " damaged packet was" : " damaged packets were", " left out");
  }
  if (end_error_ != 0) words += str_cat(words.empty() ? "" : "; ", "breaks off: ", ffmpeg_error(end_error_));
  return words;
}

}  // namespace transept
