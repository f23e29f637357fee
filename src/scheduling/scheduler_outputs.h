// The plan of one step: which sequences feed which rows, with which block tables, and which block moves come first. A
// value without pointers, so that a rank can be another process; its vectors are recycled when it is filled again, so
// that a steady decode step allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/recycled.h"
#include "core/forward_batch.h"
#include "kv/block.h"

namespace transept {

// One sequence's new rows: tokens [context_len, context_len + token_ids.size()) of it.
struct SequenceData {
  SeqId seq_id;
  int32_t index = 0;               // of the sequence in its group
  int32_t context_len = 0;         // tokens whose K and V are in the cache already
  std::vector<int32_t> token_ids;  // new rows; never empty
  // The last row stands at the sequence's end: its logits give the next token. False while a prompt or a recompute is
  // fed in parts.
  bool sampled = false;
  // Logits are wanted of the new rows [first_logits_row, token_ids.size()): the last row only, unless prompt_logprobs
  // or score_only ask for the prompt's. Equal to token_ids.size(): none. Row r predicts token context_len + r + 1. A
  // probe (SamplingParams::probe) is no part of it: StepPlan::rows say which rows are looked at.
  int32_t first_logits_row = 0;

  void clear() {
    token_ids.clear();
    sampled = false;
  }
  bool operator==(const SequenceData&) const = default;
};

// Media of an encoder input: their shape, and where their values lie in SchedulerOutputs::bulk.
struct PlannedFeatures {
  std::vector<int64_t> shape;  // empty: the input is ids
  int64_t begin = 0;           // the first of product(shape) values

  bool empty() const { return shape.empty(); }
  size_t num_values() const {
    size_t product = 1;
    for (const int64_t size : shape) product *= static_cast<size_t>(size);
    return product;
  }
  bool operator==(const PlannedFeatures&) const = default;
};

struct EncoderSequenceData {
  // In the step that encodes the input, and until the group's first step was computed: a rank that needs them later
  // keeps what it makes of them. Empty where the input is media.
  std::vector<int32_t> token_ids;
  PlannedFeatures features;  // in the step that encodes them
  int32_t num_tokens = 0;    // positions that the encoder gives; 0: a decoder-only group
  bool encode_now = false;   // in this step the encoder runs and the cross KV is written

  void clear() {
    token_ids.clear();
    features.shape.clear();
    num_tokens = 0;
    encode_now = false;
  }
  bool operator==(const EncoderSequenceData&) const = default;
};

struct SequenceGroupMetadata {
  GroupId group_id;
  bool is_prompt = false;  // rows of a decoder prompt are fed (again)
  Recycled<SequenceData> seq_data;
  Recycled<BlockTable>
      block_tables;  // block_tables[i] is the self table of seq_data[i], slots of the new rows included
  EncoderSequenceData encoder_seq_data;
  BlockTable cross_block_table;  // empty: a decoder-only group

  void clear() {
    is_prompt = false;
    seq_data.clear();
    block_tables.clear();
    encoder_seq_data.clear();
    cross_block_table.clear();
  }
  bool operator==(const SequenceGroupMetadata&) const = default;
};

// A group whose encoder input is encoded whole in this step.
struct PlannedEncode {
  GroupId group_id;
  int32_t group_idx = 0;  // in SchedulerOutputs::groups
  bool operator==(const PlannedEncode&) const = default;
};

// An encode that would delay decoding sequences for too long. It runs for a share of several steps, one such
// encode at a time. Its group stands in no plan's `groups` until it has ended (Scheduler::mark_computed). Every step
// goes on with the one that is under way; an encode that a plan does not go on with is dropped.
struct LongEncode {
  bool runs = false;        // in this step
  bool begins = false;      // with this step, and then what follows is set
  bool to_the_end = false;  // no sequence waits for it, or none shall wait longer; encodes of this step follow it
  GroupId group_id;
  EncoderSequenceData input;
  BlockTable cross_block_table;

  void clear() {
    runs = begins = to_the_end = false;
    input.clear();
    cross_block_table.clear();
  }
  bool operator==(const LongEncode&) const = default;
};

struct SchedulerOutputs {
  Recycled<SequenceGroupMetadata> groups;  // running ones, those that came back, new ones
  std::vector<PlannedEncode> encodes;
  LongEncode long_encode;
  std::vector<float> bulk;        // values of this step's media, one item behind the other
  BlockMoves moves;               // KvStorage::apply(moves) before anything is computed
  std::vector<GroupId> finished;  // freed or aborted since the last plan that was not empty: ranks drop their state

  int32_t num_seqs = 0;            // in this step
  int32_t num_decoder_tokens = 0;  // new rows
  int32_t num_encoder_tokens = 0;
  int32_t num_preempted = 0;    // groups, by either way
  int32_t num_swapped_out = 0;  // groups
  int32_t num_swapped_in = 0;
  int32_t num_admitted = 0;            // groups out of waiting
  int32_t num_encoder_cache_hits = 0;  // of those: their cross table was there, and they do not encode
  int32_t num_running = 0;             // groups after planning
  int32_t num_waiting = 0;
  int32_t num_swapped = 0;

  bool empty() const { return groups.empty() && !long_encode.runs; }
  void clear() {
    groups.clear();
    encodes.clear();
    long_encode.clear();
    bulk.clear();
    moves.clear();
    finished.clear();
    num_seqs = num_decoder_tokens = num_encoder_tokens = 0;
    num_preempted = num_swapped_out = num_swapped_in = num_admitted = num_encoder_cache_hits = 0;
    num_running = num_waiting = num_swapped = 0;
  }
  bool operator==(const SchedulerOutputs&) const = default;
};

}  // namespace transept
