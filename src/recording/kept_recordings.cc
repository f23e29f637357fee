#include "recording/kept_recordings.h"

#include <algorithm>

namespace transept {
namespace {

bool is_same(const RecordedOp& a, const RecordedOp& b) {
  return a.kind == b.kind && a.kernel == b.kernel && a.word == b.word && a.grid == b.grid && a.operands == b.operands &&
         a.arguments == b.arguments;
}

bool touches(const RecordedOp& op, BufferId buffer) {
  return op.grid.indirect.buffer == buffer ||
         std::any_of(op.operands.begin(), op.operands.end(),
                     [&](const BufferRange& operand) { return operand.buffer == buffer; });
}

}  // namespace

// Recordings of other shapes differ in one of their first ops, so that few are compared to their end.
KeptRecording* KeptRecordings::find(std::span<const RecordedOp> ops) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const KeptRecording& kept) {
    return std::equal(ops.begin(), ops.end(), kept.recording.ops.begin(), kept.recording.ops.end(), is_same);
  });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return &kept_.front();
}

KeptRecording& KeptRecordings::keep(Recording recording, std::unique_ptr<PreparedRecording> prepared) {
  if (kept_.size() >= most_) kept_.pop_back();
  return kept_.emplace_front(KeptRecording{std::move(recording), std::move(prepared)});
}

void KeptRecordings::forget(BufferId buffer) {
  std::erase_if(kept_, [&](const KeptRecording& kept) {
    return std::any_of(kept.recording.ops.begin(), kept.recording.ops.end(),
                       [&](const RecordedOp& op) { return touches(op, buffer); });
  });
}

}  // namespace transept
