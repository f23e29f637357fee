// The scheduler's part of a step's plan: the new rows of each sequence, their block tables, and the block moves that
// come first. A value without pointers, so that a rank can be another process. Refilling it reuses the memory of its
// vectors, so a steady decode step allocates nothing. Owned by the engine; not thread-safe.
//
// Tables are lists by spec: one table for each spec of their owner (TableSpec::owner), in the order of ModelSpec::kv.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/recycled.h"
#include "core/decoder_layout.h"
#include "core/encoder_item.h"
#include "kv/block.h"

namespace transept {

// The new rows of one sequence: its tokens [context_len, context_len + token_ids.size()), of which the last may be
// drafts.
struct SequenceData {
  SeqId seq_id;
  int32_t index = 0;               // of the sequence in its group
  int32_t context_len = 0;         // tokens whose K and V are in the cache already
  std::vector<int32_t> token_ids;  // new rows; never empty
  // The last row before the drafts is the sequence's last token: its logits give the next token. False while a prompt
  // or a recompute is fed in parts.
  bool sampled = false;
  // The last rows are drafts: guesses of the tokens behind the sequence's last one. Row r of them is real only if those
  // before it are, and the token chosen for the row before it is the draft itself (Scheduler::add_drafts).
  int32_t num_drafts = 0;
  // New rows [first_logits_row, token_ids.size()) need logits: only the last row and drafts, unless prompt_logprobs or
  // score_only request those of the prompt. Equal to token_ids.size(): none. Row r predicts token context_len + r + 1.
  // Does not count a probe (SamplingParams::probe): StepPlan::rows lists all rows that need logits.
  int32_t first_logits_row = 0;
  // Positions of the new rows. Empty: row r stands at context_len + r + position_delta, on every axis. Else those of
  // the first positions.size() / ModelSpec::position_axes rows, [position_axes, rows]; rows behind them as above.
  std::vector<int32_t> positions;
  int32_t position_delta = 0;

  void clear() {
    token_ids.clear();
    sampled = false;
    num_drafts = 0;
    positions.clear();
    position_delta = 0;
  }
  bool operator==(const SequenceData&) const = default;
};

// Media of an item: their shape, and the range of their values in SchedulerOutputs::bulk.
struct PlannedFeatures {
  std::vector<int64_t> shape;  // empty: the item is ids alone
  std::vector<int32_t> extras;
  int64_t begin = 0;  // index of the first of product(shape) values

  bool empty() const { return shape.empty(); }
  size_t num_values() const {
    size_t product = 1;
    for (const int64_t size : shape) product *= static_cast<size_t>(size);
    return product;
  }
  void clear() {
    shape.clear();
    extras.clear();
    begin = 0;
  }
  bool operator==(const PlannedFeatures&) const = default;
};

// Where the rows of an item come from.
enum class RowSource : uint8_t {
  kEncode,    // the rank encodes ids or media
  kInjected,  // another process has encoded them: `features` are the rows, [num_positions, width]
  kResident,  // the same, and they are in the pool: `row_blocks`
};

// An item whose rows this step makes or takes, and where they go.
struct PlannedEncode {
  GroupId group_id;
  int32_t item = 0;  // of the request's items
  RowSource source = RowSource::kEncode;
  std::vector<int32_t> token_ids;
  PlannedFeatures features;
  int32_t num_positions = 0;  // rows of the encoder's output
  int32_t num_rows = 0;       // of its widest layer; of rows that are not encoded here: num_positions
  BlockTable row_blocks;      // kResident: of ExecutorInfo::rows_spec, in order of positions
  Consumers consumers = Consumers::kNone;
  Consumers writes = Consumers::kNone;  // of the consumers those whose table is not written yet
  // Of the group; no tables unless `writes` has kCross. An empty one is written already, as another group's.
  Recycled<BlockTable> group_tables;
  CrossPlace cross;                  // of the rows in each of group_tables
  Recycled<BlockTable> item_tables;  // of the item, likewise; no tables unless `writes` has kSplice

  void clear() {
    source = RowSource::kEncode;
    token_ids.clear();
    features.clear();
    row_blocks.clear();
    group_tables.clear();
    cross = {};
    item_tables.clear();
  }
  bool operator==(const PlannedEncode&) const = default;
};

// New rows of a group's first sequence that take the rows of an item instead of their tokens' embeddings.
struct PlannedSplice {
  int32_t first_row = 0;             // of the sequence's new rows
  int32_t num_rows = 0;              // > 0
  int32_t first_slot = 0;            // of the item's rows
  Recycled<BlockTable> item_tables;  // of the item

  void clear() { item_tables.clear(); }
  bool operator==(const PlannedSplice&) const = default;
};

struct SequenceGroupMetadata {
  GroupId group_id;
  bool is_prompt = false;  // some new rows are of a decoder prompt (first run or recompute)
  Recycled<SequenceData> seq_data;
  // All tables of seq_data[0], then those of seq_data[1]: sequence_table(). Slots of the new rows included.
  Recycled<BlockTable> sequence_tables;
  int32_t num_cross_tokens = 0;       // positions of each of group_tables; 0: the group crosses nothing
  Recycled<BlockTable> group_tables;  // no tables: the group crosses nothing
  // Ids of the first item, until the group's first step was computed; empty later, and for media. A rank that needs
  // them later keeps what it derives from them.
  std::vector<int32_t> encoder_token_ids;
  std::vector<RowRange> ranges;     // DecoderLayout::ranges
  Recycled<PlannedSplice> splices;  // ascending by first_row; of seq_data[0]

  // spec_idx counts the specs of owner kSequence.
  const BlockTable& sequence_table(size_t seq_idx, size_t spec_idx) const {
    return sequence_tables[seq_idx * (sequence_tables.size() / seq_data.size()) + spec_idx];
  }
  void clear() {
    is_prompt = false;
    seq_data.clear();
    sequence_tables.clear();
    num_cross_tokens = 0;
    group_tables.clear();
    encoder_token_ids.clear();
    ranges.clear();
    splices.clear();
  }
  bool operator==(const SequenceGroupMetadata&) const = default;
};

// An item whose encode, or whose rows that are taken, would delay decoding sequences for too long, so several steps run
// a part of it each. At most one is in progress. Its group is in no plan's `groups` until all its items are there
// (Scheduler::mark_computed). Each plan continues the encode in progress; ranks drop one that a plan does not continue.
struct LongEncode {
  bool runs = false;        // in this step
  bool begins = false;      // in this step; all of `encode` is valid only then, its group, item and source always
  bool to_the_end = false;  // this step completes it: it delays no decoding sequence. `encodes` follow it
  PlannedEncode encode;

  void clear() {
    runs = begins = to_the_end = false;
    encode.clear();
  }
  bool operator==(const LongEncode&) const = default;
};

struct SchedulerOutputs {
  Recycled<SequenceGroupMetadata> groups;  // running groups, groups swapped in, new groups
  Recycled<PlannedEncode> encodes;         // none beside a long encode that goes on after this step
  LongEncode long_encode;
  std::vector<float> bulk;        // values of this step's media, item after item
  BlockMoves moves;               // KvStorage::apply(moves) comes before the computation
  std::vector<GroupId> finished;  // freed or aborted since the last plan that was not empty: ranks drop their state

  // Waiting groups whose turn has come while rows of their items cannot be had (any longer). Those behind them pass
  // them; they run only after the rows have come again. Also of an empty plan.
  std::vector<GroupId> without_rows;

  int32_t num_seqs = 0;                // sequences with new rows
  int32_t num_decoder_tokens = 0;      // new rows, drafts included
  int32_t num_draft_tokens = 0;        // drafts among them
  int32_t num_encoder_tokens = 0;      // rows (EncoderItem::num_rows) of the encodes that begin in this step
  int32_t num_injected_tokens = 0;     // rows that are taken instead of encoded
  int32_t num_preempted = 0;           // groups, by recompute or swap
  int32_t num_swapped_out = 0;         // groups; part of num_preempted
  int32_t num_swapped_in = 0;          // groups
  int32_t num_admitted = 0;            // groups taken from the waiting queue
  int32_t num_encoder_cache_hits = 0;  // admitted groups that share an existing cross table and do not encode
  int32_t num_running = 0;             // groups after planning
  int32_t num_waiting = 0;
  int32_t num_swapped = 0;

  // An item of this step.
  void count_rows(const EncoderItem& item) {
    (item.remote.has_value() ? num_injected_tokens : num_encoder_tokens) += item.num_rows();
  }
  bool empty() const { return groups.empty() && encodes.empty() && !long_encode.runs; }
  void clear() {
    groups.clear();
    encodes.clear();
    long_encode.clear();
    bulk.clear();
    moves.clear();
    finished.clear();
    without_rows.clear();
    num_seqs = num_decoder_tokens = num_draft_tokens = num_encoder_tokens = num_injected_tokens = 0;
    num_preempted = num_swapped_out = num_swapped_in = num_admitted = num_encoder_cache_hits = 0;
    num_running = num_waiting = num_swapped = 0;
  }
  bool operator==(const SchedulerOutputs&) const = default;
};

}  // namespace transept
