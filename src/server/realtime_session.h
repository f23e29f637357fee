// What /v1/realtime needs of live transcription: the interface between its sessions on the wire and LiveSession
// (speech/live_session.h), so that each is tested without the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "speech/live_session.h"

namespace transept {

// One speaker's transcription: LiveSession's functions, with its rules. Thread-safe.
class RealtimeSession {
 public:
  virtual ~RealtimeSession() = default;

  virtual Status append(std::span<const int16_t> samples) = 0;
  virtual Status commit() = 0;
  virtual void clear() = 0;
  virtual Status update(const LiveOptions& options) = 0;
  virtual void finish() = 0;
  virtual double num_waiting_seconds() const = 0;
};

// Makes the sessions of one model. Thread-safe; outlives them.
class RealtimeSpeech {
 public:
  virtual ~RealtimeSpeech() = default;

  // Errors: kInvalidArgument with the field of LiveOptions as param.
  virtual Status check(const LiveOptions& options) const = 0;
  virtual StatusOr<std::unique_ptr<RealtimeSession>> create(const LiveOptions& options,
                                                            std::shared_ptr<LiveObserver> observer) = 0;
  virtual LiveCounts counts() const = 0;
};

}  // namespace transept
