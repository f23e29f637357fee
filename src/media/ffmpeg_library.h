// Loads FFmpeg's libraries when the first audio file is opened, not at program start: with their dependencies (150
// libraries in Debian's build) they cost 30 ms and 27 MiB, and most runs read no audio. Use it through ffmpeg.h.
// Thread-safe. The libraries stay loaded until the process ends.
#pragma once

#include "media/ffmpeg_functions.h"

namespace transept {

// Loads the libraries of the newest release of ffmpeg_releases() that is there whole, once; later calls return the same
// status. All are of one release: each library's version is asked. The headers are of 5.1 in every case; of structures,
// only fields that did not move may be named, and the others are had by release->... (ffmpeg_release.h). Errors:
// kNotFound if there is none; the message names what was found and what is wanted.
Status load_ffmpeg();

// REQUIRES: load_ffmpeg() has succeeded.
const FfmpegLibrary& ffmpeg();

}  // namespace transept
