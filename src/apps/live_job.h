// The job of `transept transcribe --live`: reads a stream while it comes and has a live session transcribe it. Used by
// one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "apps/live_flags.h"
#include "apps/live_turns.h"
#include "apps/transcribe_flags.h"
#include "apps/transcript_files.h"
#include "base/status.h"
#include "speech/live_session.h"

namespace transept {

struct LiveJob {
  int descriptor = 0;  // read to its end
  LiveInput input;
  LiveOptions options;                   // the input says the sampling rate
  std::optional<TranscriptFiles> files;  // written anew after each turn
  std::function<bool()> interrupted;     // true: what has come is transcribed, and no more is read
  std::function<Status()> engine_failure;
};

// Returns once the stream has ended, or was interrupted, and all turns are transcribed and written. Errors:
// LiveInput's; LiveSession::create's; the engine's failure; the files'; the console's; kInvalidArgument if nothing
// came.
Status run_live_job(LiveHost& host, LiveJob job, const std::shared_ptr<LiveTurns>& turns);

struct LiveReport {
  LiveTurns::Result turns;
  double elapsed_seconds = 0;
};

// The same over standard input and output. `report` is filled in any case.
Status transcribe_live(const SpeechModel& speech, const LiveSettings& live, const TranscribeSettings& settings,
                       AsyncEngine& engine, LiveReport* report);

}  // namespace transept
