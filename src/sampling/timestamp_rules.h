// Whisper's rules for timestamps, as edits of one row of scores:
//
//   - <|notimestamps|> is never generated.
//   - The first token is a timestamp, at most timestamp_begin + max_initial_timestamp_index.
//   - Timestamps come in pairs (one ends a segment, the next begins one), except directly before the end token. So no
//     text follows a timestamp that follows text, and no third timestamp follows a pair (or the first one).
//   - Timestamps never decrease, and no segment is empty: one may equal the last only if it begins the next segment.
//   - If all timestamps together are likelier than the likeliest other token, the token is a timestamp.
//
// Source: openai-whisper's ApplyTimestampRules (decoding.py) and transformers' WhisperTimeStampLogitsProcessor
// (generation/logits_process.py), which agree. Only tokens of the answer count, not the prompt's, so a recomputed
// sequence gives the same edits. Pure: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "core/sampling_params.h"
#include "sampling/row_edits.h"

namespace transept {

// Adds the bans of the rules for the token after `given` and `generated`, which are the answer so far, and sets
// edits.timestamp_begin.
void apply_timestamp_rules(const TimestampRules& rules, std::span<const int32_t> given,
                           std::span<const int32_t> generated, RowEdits& edits);

}  // namespace transept
