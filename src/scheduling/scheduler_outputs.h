// The plan of one step: who feeds which rows, with which tables, and what happens to blocks before. A value without
// pointers, so that a rank can be another process; its vectors are recycled when it is filled again, so that a steady
// decode step allocates nothing.
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
};

struct EncoderSequenceData {
  std::vector<int32_t> token_ids;  // in every step; empty where the input is not ids (audio)
  // Media, in the step that encodes them; else null. Immutable and self-contained: another process gets a copy.
  std::shared_ptr<const EncoderFeatures> features;
  int32_t num_tokens = 0;   // positions that the encoder gives; 0: a decoder-only group
  bool encode_now = false;  // in this step the encoder runs and the cross KV is written

  void clear() {
    token_ids.clear();
    features.reset();
    num_tokens = 0;
    encode_now = false;
  }
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
};

// Layers of an encode that run in this step: all of them today, because an encode that is too long for a step stands
// still within a layer (LongEncode). A pipeline's stages would have a share each.
struct EncodeSlice {
  GroupId group_id;
  int32_t group_idx = 0;  // in SchedulerOutputs::groups
  LayerRange layers;
};

// An encode that would keep those who decode waiting for too long: it runs for a share of several steps, one such
// encode at a time. Its group stands in no plan's `groups` until it has ended (Scheduler::mark_computed). Every step
// goes on with the one that is under way; what a plan does not go on with is nobody's any more, and is dropped.
struct LongEncode {
  bool runs = false;        // in this step
  bool begins = false;      // with this step, and then what follows is set
  bool to_the_end = false;  // nobody waits for it in this step, or shall not any more; who encodes in it comes after
  GroupId group_id;
  EncoderSequenceData input;
  BlockTable cross_block_table;

  void clear() {
    runs = begins = to_the_end = false;
    input.clear();
    cross_block_table.clear();
  }
};

struct SchedulerOutputs {
  Recycled<SequenceGroupMetadata> groups;  // running ones, those that came back, new ones
  std::vector<EncodeSlice> encodes;
  LongEncode long_encode;
  BlockMoves moves;  // KvStorage::apply(moves) before anything is computed
  std::vector<GroupId>
      finished;  // freed or aborted since the last plan that was not empty: for who keeps state for them

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
    moves.clear();
    finished.clear();
    num_seqs = num_decoder_tokens = num_encoder_tokens = 0;
    num_preempted = num_swapped_out = num_swapped_in = num_admitted = num_encoder_cache_hits = 0;
    num_running = num_waiting = num_swapped = 0;
  }
};

}  // namespace transept
