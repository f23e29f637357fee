// FFmpeg's functions in use, as pointers, and the release they are of. ffmpeg_library.h loads them. Immutable once
// loaded.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/channel_layout.h>
#include <libavutil/dict.h>
#include <libavutil/frame.h>
#include <libavutil/log.h>
#include <libavutil/mem.h>
#include <libavutil/samplefmt.h>
#include <libswresample/swresample.h>
}

#include "base/status.h"
#include "media/ffmpeg_release.h"

// Every function in use, by its library.
// clang-format off
#define TRANSEPT_AVUTIL_FUNCTIONS(X) \
  X(av_dict_free) X(av_dict_set) X(av_frame_alloc) X(av_frame_free) \
  X(av_frame_make_writable) X(av_frame_unref) X(av_free) X(av_freep) X(av_get_bytes_per_sample) \
  X(av_get_packed_sample_fmt) X(av_log_format_line2) X(av_log_set_callback) X(av_malloc) X(av_match_list) \
  X(av_max_alloc) X(av_sample_fmt_is_planar) X(av_strerror) X(av_version_info) X(avutil_version)
#define TRANSEPT_SWRESAMPLE_FUNCTIONS(X) \
  X(swr_convert) X(swr_free) X(swr_get_out_samples) X(swr_init) X(swr_set_matrix) X(swresample_version)
// Of FFmpeg 5.1; for 4, ffmpeg4.h has them.
#define TRANSEPT_AVUTIL_LAYOUT_FUNCTIONS(X) \
  X(av_channel_layout_compare) X(av_channel_layout_copy) X(av_channel_layout_default) X(av_channel_layout_uninit)
#define TRANSEPT_SWRESAMPLE_LAYOUT_FUNCTIONS(X) X(swr_alloc_set_opts2)
#define TRANSEPT_AVCODEC_FUNCTIONS(X) \
  X(av_get_exact_bits_per_sample) X(av_packet_alloc) X(av_packet_free) X(av_packet_unref) \
  X(avcodec_alloc_context3) X(avcodec_find_decoder) X(avcodec_free_context) X(avcodec_get_name) \
  X(avcodec_open2) X(avcodec_parameters_to_context) X(avcodec_receive_frame) X(avcodec_send_packet) \
  X(avcodec_version)
#define TRANSEPT_AVFORMAT_FUNCTIONS(X) \
  X(av_probe_input_buffer2) X(av_read_frame) X(avformat_alloc_context) X(avformat_close_input) \
  X(avformat_find_stream_info) X(avformat_free_context) X(avformat_open_input) X(avformat_version) \
  X(avio_alloc_context) X(avio_context_free)
// clang-format on

namespace transept {

struct FfmpegLibrary {
#define TRANSEPT_FFMPEG_MEMBER(name) decltype(&::name) name = nullptr;
  TRANSEPT_AVUTIL_FUNCTIONS(TRANSEPT_FFMPEG_MEMBER)
  TRANSEPT_SWRESAMPLE_FUNCTIONS(TRANSEPT_FFMPEG_MEMBER)
  TRANSEPT_AVCODEC_FUNCTIONS(TRANSEPT_FFMPEG_MEMBER)
  TRANSEPT_AVFORMAT_FUNCTIONS(TRANSEPT_FFMPEG_MEMBER)
  TRANSEPT_AVUTIL_LAYOUT_FUNCTIONS(TRANSEPT_FFMPEG_MEMBER)
  TRANSEPT_SWRESAMPLE_LAYOUT_FUNCTIONS(TRANSEPT_FFMPEG_MEMBER)
#undef TRANSEPT_FFMPEG_MEMBER
  const FfmpegRelease* release = nullptr;
};

}  // namespace transept
