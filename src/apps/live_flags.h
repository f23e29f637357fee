// The flags of `transept transcribe --live`, and what they give.
#pragma once

#include <optional>
#include <vector>

#include "apps/flags.h"
#include "apps/live_input.h"
#include "base/status.h"
#include "speech/live_options.h"
#include "speech/transcribe_options.h"

namespace transept {

struct LiveSettings {
  LiveInput input;
  LiveDelay delay = LiveDelay::kMedium;
  bool has_files = false;  // --output-format or --output-dir is given: files are written, too
};

std::vector<FlagSpec> live_flags();

// nullopt without --live. Errors name the flag: a format or delay that there is not; a flag of files beside --live; an
// input other than "-"; --live-format or --live-delay without --live.
StatusOr<std::optional<LiveSettings>> live_settings(const Flags& flags);

// Of a session with these settings; the sampling rate is the input's to say.
LiveOptions live_options(const LiveSettings& settings, const TranscribeOptions& options);

}  // namespace transept
