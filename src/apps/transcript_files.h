// The files that `transept transcribe` writes: what they are called, whether they are there already, and how they come
// to be, whole or not at all.
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

// Names the inputs: a file's name without its extension ("stdin" for "-"), as openai-whisper does it; of two of one
// stem the second keeps the extension ("a.wav", "a.mp3": "a", "a.mp3"), and of two files of one name in different
// folders the second gets a number. No two have one name, and no result is written over an input.
void name_outputs(std::vector<AudioInput>& inputs, const TranscriptFiles& files);

std::string output_path(const TranscriptFiles& files, const AudioInput& input, TranscriptFormat format);

// There are results of all formats.
bool has_outputs(const TranscriptFiles& files, const AudioInput& input);

// Every format's file, each by write_file. Errors name the file.
Status write_outputs(const TranscriptFiles& files, const AudioInput& input, const Transcript& transcript);

// Replaces the file by `content` in one step: a reader sees the old one or the new one, whole. Errors name it.
Status write_file(const std::string& path, std::string_view content);

}  // namespace transept
