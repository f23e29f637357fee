// The flags of `transept transcribe`: openai-whisper's, with dashes, its values (true, false; none for "not set") and
// its defaults, and what comes of them.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "apps/transcript_files.h"
#include "base/status.h"
#include "speech/transcribe_options.h"

namespace transept {

struct TranscribeSettings {
  TranscribeOptions options;
  TranscriptFiles files;
  bool to_stdout = false;  // --output-dir -: results instead of what is said on the way
  bool verbose = true;     // segments as they are decided
  bool resume = false;
  bool recursive = false;
  int32_t num_workers = 0;            // files at once
  std::vector<std::string> warnings;  // options that have no effect beside others
};

// Without the engine's.
std::vector<FlagSpec> transcribe_flags();

// Everything that can be judged without a model and without the inputs. Errors name the flag.
StatusOr<TranscribeSettings> transcribe_settings(const Flags& flags);

// Whether an error of a transcription is about an option, which no file can be served with, and not about a file.
bool is_option_error(const Status& status);

// An error about an option, by its name with underscores, as one about its flag.
Status blame_transcribe_flag(const Status& status, const Flags& flags);

}  // namespace transept
