#include "async/engine_snapshot.h"

#include <algorithm>

namespace transept {
namespace {

void append(const std::vector<std::string>& more, std::vector<std::string>& ids) {
  ids.insert(ids.end(), more.begin(), more.end());
}

void add(const EngineSnapshot::Blocks& more, EngineSnapshot::Blocks& sum) {
  sum.total += more.total;
  sum.free += more.free;
  sum.self += more.self;
  sum.cross += more.cross;
  sum.pinned += more.pinned;
  sum.cached_tables += more.cached_tables;
  sum.cached += more.cached;
  sum.prefixes += more.prefixes;
  sum.host_total += more.host_total;
  sum.host_free += more.host_free;
}

void add(const EngineSnapshot::Counts& more, EngineSnapshot::Counts& sum) {
  sum.finished += more.finished;
  sum.aborted += more.aborted;
  sum.expired += more.expired;
  sum.failed += more.failed;
  sum.refused += more.refused;
}

void add(const DraftStats& more, DraftStats& sum) {
  sum.num_drafts += more.num_drafts;
  sum.num_draft_tokens += more.num_draft_tokens;
  sum.num_accepted_tokens += more.num_accepted_tokens;
  for (size_t i = 0; i < sum.num_accepted_at.size(); ++i) sum.num_accepted_at[i] += more.num_accepted_at[i];
}

void add(const EngineStats& more, EngineStats& sum) {
  static_assert(sizeof(EngineStats) == 21 * sizeof(int64_t) + sizeof(DraftStats), "every figure is added up here");
  sum.num_steps += more.num_steps;
  sum.num_prompt_tokens += more.num_prompt_tokens;
  sum.num_encoder_tokens += more.num_encoder_tokens;
  sum.num_encoder_cache_hits += more.num_encoder_cache_hits;
  sum.num_encoder_cache_misses += more.num_encoder_cache_misses;
  sum.num_encoder_cache_evictions += more.num_encoder_cache_evictions;
  sum.num_encoder_cache_expirations += more.num_encoder_cache_expirations;
  sum.num_prefix_cache_queries += more.num_prefix_cache_queries;
  sum.num_prefix_cache_hits += more.num_prefix_cache_hits;
  sum.num_injected_tokens += more.num_injected_tokens;
  sum.num_local_encodes += more.num_local_encodes;
  sum.num_long_encodes += more.num_long_encodes;
  sum.num_reencodes += more.num_reencodes;
  sum.num_generated_tokens += more.num_generated_tokens;
  sum.num_preemptions += more.num_preemptions;
  sum.num_swaps_out += more.num_swaps_out;
  sum.num_swaps_in += more.num_swaps_in;
  sum.max_running_seqs = std::max(sum.max_running_seqs, more.max_running_seqs);  // of one step
  add(more.drafts, sum.drafts);
  sum.encode_seconds += more.encode_seconds;
  sum.decode_seconds += more.decode_seconds;
  sum.step_seconds += more.step_seconds;
}

void add(const ExecutorStats& more, ExecutorStats& sum) {
  sum.num_encoder_runs += more.num_encoder_runs;
  sum.num_cross_kv_writes += more.num_cross_kv_writes;
  sum.num_matmuls += more.num_matmuls;
  sum.bytes_copied += more.bytes_copied;
  sum.bytes_swapped_out += more.bytes_swapped_out;
  sum.bytes_swapped_in += more.bytes_swapped_in;
  sum.num_arena_overflows += more.num_arena_overflows;
  sum.steps += more.steps;
  // All replicas share one device, and each says what it was when its last step ended.
  if (more.device.has_value() && sum.device.has_value() && more.device->num_submits > sum.device->num_submits) {
    sum.device = more.device;
  }
}

}  // namespace

EngineSnapshot add_up(std::span<const EngineSnapshot> replicas) {
  EngineSnapshot sum = replicas.front();
  for (const EngineSnapshot& more : replicas.subspan(1)) {
    append(more.running, sum.running);
    append(more.waiting, sum.waiting);
    append(more.swapped, sum.swapped);
    append(more.awaiting_inputs, sum.awaiting_inputs);
    add(more.blocks, sum.blocks);
    sum.num_queued += more.num_queued;  // max_queued is of all of them already
    add(more.counts, sum.counts);
    add(more.stats, sum.stats);
    add(more.executor, sum.executor);
    sum.ec.add(more.ec);
  }
  return sum;
}

}  // namespace transept
