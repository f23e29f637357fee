// The files that `transept transcribe` writes: their names, whether they exist, and their writing, whole or not at all.
// Functions of the file system, thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/audio_files.h"
#include "base/status.h"
#include "speech/subtitles.h"
#include "speech/transcript.h"

namespace transept {

struct TranscriptFiles {
  std::string folder = ".";
  std::vector<TranscriptFormat> formats = {TranscriptFormat::kJson};
  SubtitleOptions subtitles;
};

// Names the inputs: a file's name without its extension ("stdin" for "-"), as openai-whisper does. If that name is
// taken, the file keeps its extension ("a.wav", "a.mp3": "a", "a.mp3"); if that is taken too, as by a file of that name
// in another folder, it gets a number. No two inputs have the same name, and no result overwrites an input.
void name_outputs(std::vector<FoundFile>& inputs, const TranscriptFiles& files);

std::string output_path(const TranscriptFiles& files, const FoundFile& input, TranscriptFormat format);

// Whether the results of all formats exist.
bool has_outputs(const TranscriptFiles& files, const FoundFile& input);

// Writes the file of every format with write_file. Errors name the file.
Status write_outputs(const TranscriptFiles& files, const FoundFile& input, const Transcript& transcript);

// Replaces the file by `content` atomically: a reader sees the old file or the new one, whole. Errors name the file.
Status write_file(const std::string& path, std::string_view content);

}  // namespace transept
