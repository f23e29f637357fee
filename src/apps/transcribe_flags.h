// The flags of `transept transcribe`, and the settings that they give: openai-whisper's flags, with dashes, with its
// values (true, false; none for "not set") and its defaults.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/flags.h"
#include "apps/shard.h"
#include "apps/transcript_files.h"
#include "base/status.h"
#include "speech/transcribe_options.h"

namespace transept {

struct TranscribeSettings {
  TranscribeOptions options;
  TranscriptFiles files;
  bool to_stdout = false;  // --output-dir -: results instead of progress messages
  bool verbose = true;     // segments as they are decided
  bool has_notes = true;   // language, length and speed of each file, on standard error
  bool has_progress = true;
  bool resume = false;
  bool recursive = false;
  std::optional<Shard> shard;
  int32_t num_workers = 0;            // files in work at once
  std::vector<std::string> warnings;  // options that others make ineffective
};

// Without the engine's flags.
std::vector<FlagSpec> transcribe_flags();

// Checks everything that needs neither the model nor the inputs. Errors name the flag.
StatusOr<TranscribeSettings> transcribe_settings(const Flags& flags);

// Whether the error of a transcription concerns an option, and so all files, rather than one file.
bool is_option_error(const Status& status);

// Turns an error about an option (its name has underscores) into one about its flag.
Status blame_transcribe_flag(const Status& status, const Flags& flags);

}  // namespace transept
