// Finds and reads the inputs of `transept transcribe` (found_files.h), standard input among them.
// Functions of the file system, thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "apps/found_files.h"
#include "base/status.h"
#include "speech/transcriber.h"

namespace transept {

// find_files() of audio and video. Containers that are not accepted are found too: an error is better than silence.
FoundFiles find_audio(std::span<const std::string> arguments, bool recursive);

// Judges by the extension, in any case.
bool is_audio_name(std::string_view file_name);

// Maps files; reads standard input, pipes and devices whole. Polls `cancelled` while they are silent. Errors, without
// the path: it cannot be read; more than kMaxStreamBytes of a stream (both numbers); kCancelled.
inline constexpr size_t kMaxStreamBytes = size_t{1} << 30;
StatusOr<AudioSource> read_audio(const std::string& path, const std::function<bool()>& cancelled,
                                 size_t max_stream_bytes = kMaxStreamBytes);

}  // namespace transept
