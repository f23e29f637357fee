// Finds and reads the inputs of `transept transcribe`: files, folders, patterns that no shell expanded, standard input.
// Functions of the file system, thread-safe.
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
  std::string path;  // as given or found; "-": standard input
  std::string name;  // of its results, without extension (name_outputs)
  Status problem;    // ok; or why nothing can be read, without the path
};

struct FoundAudio {
  std::vector<AudioInput> inputs;
  size_t num_repeated = 0;  // inputs given again under any spelling of their path; each is kept once
};

// Returns the inputs in the order of the arguments; the contents of a folder or a pattern are sorted by path. Of a
// folder, takes every file with an extension of audio or video, except pipes, devices and names that begin with a dot;
// with `recursive`, also of the folders below it, but does not follow links. An argument that is a file is an input
// whatever its extension. An argument that yields nothing is an input with a problem.
FoundAudio find_audio(std::span<const std::string> arguments, bool recursive);

// Judges by the extension, in any case. True also for containers that are not accepted: an error is better than
// silence.
bool is_audio_name(std::string_view file_name);

// Maps files; reads standard input, pipes and devices whole. Polls `cancelled` while they are silent. Errors, without
// the path: it cannot be read; more than kMaxStreamBytes of a stream (both numbers); kCancelled.
inline constexpr size_t kMaxStreamBytes = size_t{1} << 30;
StatusOr<AudioSource> read_audio(const std::string& path, const std::function<bool()>& cancelled,
                                 size_t max_stream_bytes = kMaxStreamBytes);

}  // namespace transept
