// What `transept transcribe` is to read: files, folders, patterns that no shell expanded, standard input. Functions of
// the file system, thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "speech/transcriber.h"

namespace transept {

struct AudioInput {
  std::string path;  // as it was given or found; "-": standard input
  std::string name;  // of its results, without their extension (name_outputs)
  Status problem;    // ok; or why there is nothing to read, without the path
};

struct FoundAudio {
  std::vector<AudioInput> inputs;
  size_t num_repeated = 0;  // given twice, by whatever spelling of their path: they are inputs once
};

// In the order of the arguments; what a folder or a pattern holds is sorted by path. Of folders everything whose
// extension is one of audio or video, but for what begins with a dot, pipes and devices; `recursive`: of the folders in
// them too, links aside. An argument that is a file is an input whatever its extension. What gives nothing is an input
// with a problem.
FoundAudio find_audio(std::span<const std::string> arguments, bool recursive);

// By its extension, in any case: also of containers that are not accepted, for which an error is better than silence.
bool is_audio_name(std::string_view file_name);

// Maps files; reads standard input, pipes and devices whole. `cancelled` is looked at while they are silent.
// Errors, without the path: it cannot be read; more than kMaxStreamBytes of a stream (both numbers); kCancelled.
inline constexpr size_t kMaxStreamBytes = size_t{1} << 30;
StatusOr<AudioSource> read_audio(const std::string& path, const std::function<bool()>& cancelled,
                                 size_t max_stream_bytes = kMaxStreamBytes);

}  // namespace transept
