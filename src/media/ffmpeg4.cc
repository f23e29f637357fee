#include "media/ffmpeg4.h"

#include <dlfcn.h>

#include <bit>

namespace transept {
namespace {

// FFmpeg 4's own, which later versions removed.
struct Functions {
  int64_t (*av_get_default_channel_layout)(int num_channels) = nullptr;
  int (*av_opt_set_int)(void* object, const char* name, int64_t value, int flags) = nullptr;
  SwrContext* (*swr_alloc_set_opts)(SwrContext* context, int64_t out_mask, AVSampleFormat out_format, int out_rate,
                                    int64_t in_mask, AVSampleFormat in_format, int in_rate, int log_offset,
                                    void* log_context) = nullptr;
};
Functions functions;  // written while the libraries are loaded, before anything calls

template <typename Function>
Status find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr ? ok_status() : absl::NotFoundError(str_cat("has no ", name));
}

int64_t mask_of(const AVChannelLayout& layout) {
  return layout.order == AV_CHANNEL_ORDER_NATIVE ? static_cast<int64_t>(layout.u.mask) : 0;
}

int copy(AVChannelLayout* to, const AVChannelLayout* from) {
  *to = *from;
  return 0;
}

int compare(const AVChannelLayout* a, const AVChannelLayout* b) {
  return a->order == b->order && a->nb_channels == b->nb_channels && mask_of(*a) == mask_of(*b) ? 0 : 1;
}

void set_default(AVChannelLayout* layout, int num_channels) {
  *layout = layout_of_mask(static_cast<uint64_t>(functions.av_get_default_channel_layout(num_channels)), num_channels);
}

void uninit(AVChannelLayout* layout) { *layout = {}; }

int alloc_resampler(SwrContext** context, AVChannelLayout* out_layout, AVSampleFormat out_format, int out_rate,
                    AVChannelLayout* in_layout, AVSampleFormat in_format, int in_rate, int log_offset,
                    void* log_context) {
  *context = functions.swr_alloc_set_opts(*context, mask_of(*out_layout), out_format, out_rate, mask_of(*in_layout),
                                          in_format, in_rate, log_offset, log_context);
  if (*context == nullptr) return AVERROR(ENOMEM);
  // A mask of 0 does not say how many.
  int code = functions.av_opt_set_int(*context, "och", out_layout->nb_channels, 0);
  if (code >= 0) code = functions.av_opt_set_int(*context, "ich", in_layout->nb_channels, 0);
  return code;
}

}  // namespace

Status add_channel_layouts(void* avutil, void* swresample, FfmpegLibrary& library) {
  RETURN_IF_ERROR(find(avutil, "av_get_default_channel_layout", functions.av_get_default_channel_layout));
  RETURN_IF_ERROR(find(avutil, "av_opt_set_int", functions.av_opt_set_int));
  RETURN_IF_ERROR(find(swresample, "swr_alloc_set_opts", functions.swr_alloc_set_opts));
  library.av_channel_layout_compare = compare;
  library.av_channel_layout_copy = copy;
  library.av_channel_layout_default = set_default;
  library.av_channel_layout_uninit = uninit;
  library.swr_alloc_set_opts2 = alloc_resampler;
  return ok_status();
}

AVChannelLayout layout_of_mask(uint64_t mask, int num_channels) {
  AVChannelLayout layout{};
  layout.order = AV_CHANNEL_ORDER_UNSPEC;
  layout.nb_channels = num_channels;
  if (mask != 0 && std::popcount(mask) == num_channels) {
    layout.order = AV_CHANNEL_ORDER_NATIVE;
    layout.u.mask = mask;
  }
  return layout;
}

}  // namespace transept
