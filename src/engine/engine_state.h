// The state of an engine between two steps. Values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "encoder_cache/ec_stats.h"
#include "rank/executor.h"
#include "speculation/speculation_options.h"

namespace transept {

// Guesses of tokens that were run, since the start (vLLM's spec_decode metrics).
struct DraftStats {
  int64_t num_drafts = 0;  // runs of guesses: one a sequence and step
  int64_t num_draft_tokens = 0;
  int64_t num_accepted_tokens = 0;                                   // that became tokens of an answer
  std::array<int64_t, kMostSpeculativeTokens> num_accepted_at = {};  // by place in the run
};

// Since the start.
struct EngineStats {
  int64_t num_steps = 0;
  int64_t num_prompt_tokens = 0;              // decoder rows of prompts, recomputed ones included
  int64_t num_encoder_tokens = 0;             // recomputed ones included
  int64_t num_encoder_cache_hits = 0;         // admissions of groups that found their cross KV and did not encode
  int64_t num_encoder_cache_misses = 0;       // of groups with an encoder input that did
  int64_t num_encoder_cache_evictions = 0;    // idle tables that made room
  int64_t num_encoder_cache_expirations = 0;  // idle tables whose time was over
  int64_t num_prefix_cache_queries = 0;       // decoder tokens at admissions that looked for them
  int64_t num_prefix_cache_hits = 0;          // of these, those that were found
  int64_t num_injected_tokens = 0;            // rows that came from elsewhere; taken again after preemption, too
  int64_t num_local_encodes = 0;              // items that a decode instance encoded itself
  int64_t num_long_encodes = 0;               // items that were encoded, or taken, in slices of several steps
  int64_t num_reencodes = 0;                  // encodes of an input whose earlier cross KV was evicted
  int64_t num_generated_tokens = 0;
  int64_t num_preemptions = 0;
  int64_t num_swaps_out = 0, num_swaps_in = 0;  // groups
  int64_t max_running_seqs = 0;
  DraftStats drafts;
  double encode_seconds = 0, decode_seconds = 0, step_seconds = 0;
};

struct EngineState {
  std::vector<std::string> running, waiting, swapped;  // request ids, in order of arrival
  std::vector<std::string> awaiting_inputs;            // whose encodes are asked for elsewhere; outside the scheduler
  struct Blocks {
    int32_t total = 0, free = 0, self = 0, cross = 0;  // on the device
    // Idle ones: of inputs that are pinned, of others, and of decoder prompts.
    int32_t pinned = 0, cached = 0, prefixes = 0;
    int32_t cached_tables = 0;
    int32_t host_total = 0, host_free = 0;
    uint64_t block_bytes = 0;

    int32_t available() const { return free + pinned + cached + prefixes; }
  } blocks;
  int32_t num_queued = 0;  // requests before their first step, those that await their inputs included
  EngineStats stats;
  ExecutorStats executor;
  EcStats ec;  // of an instance of a fleet
};

}  // namespace transept
