// What FFmpeg 5.1 has and FFmpeg 4 lacks: channel layouts, over 4's masks, and the resampler's set-up by them. They do
// what 5.1's do for layouts without or with positions, which are all that 4 has. Thread-safe.
#pragma once

#include "media/ffmpeg_functions.h"

namespace transept {

// Puts them where the functions of 5.1 would be. avutil and swresample: handles of FFmpeg 4's libraries. Errors:
// kNotFound for a function that FFmpeg 4 should have; the message names it.
Status add_channel_layouts(void* avutil, void* swresample, FfmpegLibrary& library);

// A view of channels with these positions (AV_CH_...); without positions if their number is another.
AVChannelLayout layout_of_mask(uint64_t mask, int num_channels);

}  // namespace transept
