// Recordings in a device's own form that are submitted again when the same ops come again: the same kernels with the
// same arguments over the same ranges in the same order. What the ranges hold is not compared: new lengths, tables and
// ids in the same memory are another run of the same recording. Nothing else decides what is run again, so a recording
// can never run for a step whose ops are others. Owned by the user of one stream, and used by its thread.
#pragma once

#include <list>
#include <memory>
#include <span>

#include "recording/stream.h"

namespace transept {

struct KeptRecording {
  Recording recording;  // as ops came; what was prepared may be other kernels that do the same
  std::unique_ptr<PreparedRecording> prepared;
  Ticket last = Ticket::kNone;  // of the user: where it has run last
  int64_t num_dispatches = 0;   // of the user: kernels of what was prepared
};

class KeptRecordings final {
 public:
  // Keeps at most so many. REQUIRES: at least 1.
  explicit KeptRecordings(size_t most) : most_(most) {}

  size_t size() const { return kept_.size(); }
  // That of these ops, whatever their waves are; null: there is none. Valid until it is given up for another one.
  KeptRecording* find(std::span<const RecordedOp> ops);
  // Gives up the one that was not used for longest, if there are too many: that waits for its last ticket.
  KeptRecording& keep(Recording recording, std::unique_ptr<PreparedRecording> prepared);
  // Gives up all that touch the buffer: before it is freed.
  void forget(BufferId buffer);

 private:
  size_t most_;
  std::list<KeptRecording> kept_;  // what was used last is first
};

}  // namespace transept
