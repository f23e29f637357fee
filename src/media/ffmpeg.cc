#include "media/ffmpeg.h"

#include <cstdarg>
#include <string_view>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "media/ffmpeg4.h"

namespace transept {
namespace {

constexpr size_t kMaxAllocationBytes = size_t{64} << 20;

void log_message(void* context, int level, const char* format, va_list arguments) {
  if (log_level() < LogLevel::kDebug || level > AV_LOG_WARNING) return;
  char line[512];
  int print_prefix = 1;
  ffmpeg().av_log_format_line2(context, level, format, arguments, line, sizeof line, &print_prefix);
  write_log(LogLevel::kDebug, str_cat("ffmpeg: ", trim(std::string_view(line))));
}

}  // namespace

Status set_up_ffmpeg() {
  RETURN_IF_ERROR(load_ffmpeg());
  static std::once_flag once;
  std::call_once(once, [] {
    ffmpeg().av_log_set_callback(log_message);
    ffmpeg().av_max_alloc(kMaxAllocationBytes);
  });
  return ok_status();
}

std::string ffmpeg_error(int code) {
  if (code == AVERROR_EOF) return "it ends too early";
  if (code == AVERROR_INVALIDDATA || code == AVERROR(EINVAL) || code == AVERROR(EIO)) return "its data is damaged";
  if (code == AVERROR_PATCHWELCOME) return "it uses a feature that FFmpeg does not know";
  if (code == AVERROR(ENOMEM)) return "it claims more memory than is given";
  char words[AV_ERROR_MAX_STRING_SIZE] = {};
  ffmpeg().av_strerror(code, words, sizeof words);
  return words;
}

std::string ffmpeg_version() { return ffmpeg().av_version_info(); }

int frame_rate(const AVFrame& frame) { return field<int>(&frame, ffmpeg().release->frame.sample_rate); }

int frame_channels(const AVFrame& frame) { return field<int>(&frame, ffmpeg().release->frame.num_channels); }

AVChannelLayout frame_layout(const AVFrame& frame) {
  const FfmpegRelease& release = *ffmpeg().release;
  if (release.has_channel_layouts()) return field<AVChannelLayout>(&frame, release.frame.layout);
  return layout_of_mask(field<uint64_t>(&frame, release.frame.layout), frame_channels(frame));
}

}  // namespace transept
