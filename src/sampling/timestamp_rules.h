// Whisper's rules for timestamps, as edits of one row of scores:
//
//   - <|notimestamps|> is never generated;
//   - the first token is a timestamp, at most max_initial_timestamp_index;
//   - timestamps come in pairs (one ends a segment, the next begins one), except directly before the end token: after
//     one that follows text there is no text, after a pair (and after the first) there is no third;
//   - they never decrease, and a segment is not empty: one may equal the last only where it begins the next segment;
//   - where all timestamps together are likelier than the likeliest other token, it is a timestamp.
//
// openai-whisper's ApplyTimestampRules (decoding.py) and transformers' WhisperTimeStampLogitsProcessor
// (generation/logits_process.py), which agree. Only the generated tokens count, whatever the prompt holds, so a
// recomputed sequence gives the same. Pure: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "core/sampling_params.h"
#include "sampling/row_edits.h"

namespace transept {

// Adds the rules' bans, and the weighing, for the token after `generated`.
void apply_timestamp_rules(const TimestampRules& rules, std::span<const int32_t> generated, RowEdits& edits);

}  // namespace transept
