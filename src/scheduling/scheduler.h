// Decides what a step computes. Each step takes running sequences first, then groups from the host pool, then waiting
// groups in order of arrival (encode and prefill together). Three budgets limit it: decoder tokens, encoder tokens,
// sequences. The scan stops at the first group that does not fit, so no group starves. A step that preempts a group
// admits none and swaps none in.
//
// There are no prefill steps and decode steps: a sequence has tokens, some of them are computed, and a step feeds the
// next ones. A prompt, one new token and the tail of a recomputed sequence are handled alike.
//
// Out of blocks, the last running group (by arrival) is preempted, by recompute or by swapping. So the oldest group
// always makes progress; alone it always fits, because add_seq_group refuses a group that could not.
//
// A group's items are encoded one by one, as the budget has room: in one step or in several. It feeds no row before all
// are. Groups whose items have the same digests share the tables that these are written to, if sharing is on or the
// items are pinned (BlockSpaceManager). One of them encodes, at the latest in the step in which the first of the others
// decodes. A group that shares a table is preempted by recompute. Rows that are spliced into the prompt stay in their
// item's table until the prompt's rows are computed.
//
// Remote items are encoded elsewhere, and their rows lie in items' tables that are found by their digests. A group
// takes them into its own tables of cross KV when it is admitted, within a budget of their own. One whose rows are not
// here is not admitted, and is passed over by the others: SchedulerOutputs::without_rows.
//
// While any sequence decodes, groups encode and take at most set_max_tokens_beside rows per step. An item that has
// more, and is the first of a step, begins a long encode: later steps end it. Other items, local or remote, wait for
// its end.
//
// Several plans may be in flight (Options::max_steps_in_flight): made, and not collected by mark_computed() yet. A
// group of one of them is busy: it is in no other plan, keeps its blocks, and is not preempted. Its abort takes effect
// when its plan was collected. A group feeds no rows in a plan that encodes for it, and its tables are not shared
// before that was collected: so no row of a plan reads what the plan's encodes write. A plan takes its share of the
// running groups and of those that wait, oldest first, so that the plans in flight have equal parts. Plans are executed
// in the order in which they were made, their block moves too: a block that one plan frees may be given by the next.
//
// Owned by the engine. Not thread-safe (engine thread). The calls of a step:
//
//   scheduler.schedule(outputs);             scheduler.add_drafts(..); execute(outputs);
//   scheduler.mark_computed(outputs, ended); sequence.append_token(...), fork_sequence(...), finish_sequence(...)
//   scheduler.settle_drafts(...);
//   scheduler.free_finished_seq_groups();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/status.h"
#include "kv/block_space_manager.h"
#include "scheduling/scheduler_outputs.h"
#include "scheduling/sequence_group.h"

namespace transept {

enum class PreemptionMode : uint8_t {
  kAuto,       // one unfinished sequence: recompute; several: as kSwap
  kRecompute,  // always recompute
  kSwap,       // swap; recompute if BlockSpaceManager::can_swap_out is false, or a recompute is pending
};

class Scheduler final {
 public:
  struct Options {
    int32_t max_num_batched_tokens = 2048;  // decoder tokens per step
    int32_t max_num_encoder_tokens = 4096;  // encoder tokens per step, and of one input
    int32_t max_num_injected_tokens = 0;    // rows of remote items per step; 0: four times max_num_encoder_tokens
    int32_t max_num_seqs = 64;              // running sequences
    bool may_encode = true;                 // false: only remote items can be had; others are without_rows
    int32_t max_steps_in_flight = 1;        // more: there are no long encodes (set_max_tokens_beside)
    PreemptionMode preemption_mode = PreemptionMode::kAuto;

    int32_t injected_tokens() const;

    // Errors: kInvalidArgument, naming the field: a budget or a number of steps below 1; fewer batched tokens than
    // sequences, since each running sequence feeds at least one token per step.
    Status validate() const;
  };

  // Borrows the clock. REQUIRES: both options are valid.
  Scheduler(const Options& options, const BlockSpaceManager::Options& block_options, const Clock& clock);

  // Appends the group to the waiting queue; a group that continues an earlier part takes the part's place there.
  // Errors: as check_admission(). REQUIRES: its id is not in use.
  Status add_seq_group(std::unique_ptr<SequenceGroup> group);
  // Checks whether such a group can ever be admitted. Errors: kInvalidArgument, with both counts: the worst case
  // (blocks of all items' tables + sequences x ceil((prompt + max_tokens) / tokens a block) of each sequence spec,
  // nothing shared) exceeds the device blocks less the watermark; more sequences than max_num_seqs; an item of more
  // rows than max_num_encoder_tokens.
  Status check_admission(std::span<const EncoderItem> items, int64_t max_tokens_per_seq, int64_t num_seqs) const;

  // Makes a waiting group's remote items ordinary ones, which are encoded here: their content is with them
  // (EncoderItem::content). No-op for a group that runs or is swapped: its items are in its tables. REQUIRES: the group
  // is here, and Options::may_encode.
  void encode_here(GroupId group_id);

  // Frees a group in any state, and its blocks (a shared or pinned cross table stays). May be called between schedule()
  // and mark_computed(). A busy group is finished, and freed as such when its plan was collected. Returns false: no
  // such group, or it was aborted before.
  bool abort_seq_group(GroupId group_id);

  // Sets the limits from the next schedule() on: rows that are encoded, and rows of remote items that are taken. Unset,
  // or while no sequence decodes, only max_num_encoder_tokens and max_num_injected_tokens limit. REQUIRES: one step in
  // flight, if any is set.
  void set_max_tokens_beside(std::optional<int32_t> encoded, std::optional<int32_t> injected) {
    max_encoder_tokens_beside_ = encoded;
    max_injected_tokens_beside_ = injected;
  }

  // Plans a step into `outputs`, reusing its memory. An empty plan has nothing to compute and is not to be executed;
  // any other is in flight from now on. With one step in flight, a plan that was not marked computed is lost, and what
  // it was to encode is planned again. REQUIRES, with more: may_schedule().
  void schedule(SchedulerOutputs& outputs);
  int32_t num_steps_in_flight() const { return static_cast<int32_t>(in_flight_.size()); }
  bool may_schedule() const { return num_steps_in_flight() < options_.max_steps_in_flight; }
  // The plans in flight were not executed, and will not be: their groups are as if they had not been planned, but for
  // their blocks. Aborted ones are freed.
  void abandon_plans();

  // Adds drafts behind the last row of a planned sequence, as many of them as fit into what the plan leaves of the
  // token budget and of blocks that are free or idle. So drafts never preempt a group and never delay one that waits.
  // Call after schedule(). Returns how many it took. REQUIRES: the sequence is sampled and has no drafts, its
  // plan is that of one row, and with the drafts and one token more it is no longer than max_tokens_per_seq.
  int32_t add_drafts(SchedulerOutputs& outputs, size_t group_idx, size_t seq_idx, std::span<const int32_t> drafts);
  // Rows that add_drafts() can still take.
  int32_t num_spare_tokens() const { return num_spare_tokens_; }
  // Drafts of the executed plan became tokens: the first `num_kept` rows of drafts count as computed, and the slots of
  // the others are given back. Call after mark_computed(), when the tokens were appended. No-op for a finished
  // sequence.
  void settle_drafts(Sequence& seq, int32_t num_kept);

  // Collects the plan that has been in flight longest, as it was executed: its rows are in the cache, but those of
  // drafts count only once they are settled. Its groups are busy no more. Call before tokens are appended. Skips groups
  // that were aborted since schedule(). long_encode_ended: the execution ended the plan's long encode.
  void mark_computed(const SchedulerOutputs& outputs, bool long_encode_ended = false);

  // Returns a new sequence of the group that shares all tokens and blocks with `parent`; no block is allocated until
  // they diverge. For n > 1 and beams, after a step was sampled and before tokens are appended. REQUIRES: the group is
  // running, and `parent` is unfinished and all its tokens are computed.
  Sequence& fork_sequence(SequenceGroup& group, SeqId parent);
  // Ends a sequence and frees its blocks. It stays in its group for the results. REQUIRES: reason is not kNone.
  void finish_sequence(SequenceGroup& group, SeqId seq_id, FinishReason reason);
  // Frees a sequence and its blocks (a beam that is dropped).
  void remove_sequence(SequenceGroup& group, SeqId seq_id);
  // Keeps the cross tables of inputs with this digest after their last group has ended, while there is room. Call
  // between steps.
  void pin_input(const ContentDigest& digest) { blocks_.pin(digest); }
  void unpin_input(const ContentDigest& digest) { blocks_.unpin(digest); }

  // ---- What stays for later groups (BlockSpaceManager::Options::cache_inputs, cache_prefixes)

  // Frees what has stayed for too long. Call between steps.
  void expire_cache() { blocks_.advance_to(clock_.now()); }
  // BlockSpaceManager::clear_cache(). Call between steps.
  int32_t clear_cache() { return blocks_.clear_cache(); }
  // Since the start.
  struct CacheCounts {
    int64_t num_misses = 0;          // admissions of groups with items that must be encoded or taken
    int64_t num_prefix_queries = 0;  // decoder tokens at admissions that looked for them
    int64_t num_prefix_hits = 0;     // of these, those whose blocks were found
  };
  const CacheCounts& cache_counts() const { return cache_counts_; }

  // Frees groups whose sequences are all finished, and their cross tables, but no busy ones. Invalidates pointers to
  // these groups.
  void free_finished_seq_groups();

  SequenceGroup* find(GroupId group_id) const;  // null: no such group
  SeqId next_seq_id() { return SeqId(next_seq_id_++); }
  bool has_unfinished() const { return !groups_.empty(); }  // also groups that finished and are not freed yet

  // In their order (SequenceGroup::comes_before).
  std::span<SequenceGroup* const> waiting() const { return waiting_; }
  std::span<SequenceGroup* const> running() const { return running_; }
  std::span<SequenceGroup* const> swapped() const { return swapped_; }
  const BlockSpaceManager& blocks() const { return blocks_; }
  // For reservations beside the groups, between steps (encoder_cache/).
  BlockSpaceManager& reservable_blocks() { return blocks_; }
  const Options& options() const { return options_; }

  // Checks the block manager's invariants, and that each group is in the one queue of its state, in its order,
  // and has block tables exactly if it is running or swapped; that busy groups run and keep theirs. Errors: kInternal,
  // naming the group. For tests and debug runs.
  Status check_invariants() const;

 private:
  using Queue = std::vector<SequenceGroup*>;  // sorted by arrival

  struct Budget {  // what is left of the step's limits
    int32_t tokens = 0;
    int32_t encoder_tokens = 0;
    int32_t injected_tokens = 0;
    int32_t seqs = 0;
    bool is_beside = false;  // a sequence decodes: set_max_tokens_beside limits both

    int32_t& rows_of(const EncoderItem& item) { return item.remote.has_value() ? injected_tokens : encoder_tokens; }
  };
  // Shared tables of a group, [begin, end) of BlockSpaceManager::Request::shared.
  struct TableRange {
    size_t begin = 0, end = 0;
  };
  struct Rows {  // a sequence feeds its next `count` tokens
    Sequence* seq = nullptr;
    int32_t count = 0;
  };

  bool has_several_plans() const { return options_.max_steps_in_flight > 1; }
  static int32_t share_of(size_t num_groups, int32_t num_plans);
  void set_busy(SequenceGroup& group);
  void set_collected(SequenceGroup& group);
  bool may_preempt(const SchedulerOutputs& outputs) const;
  enum class Room : uint8_t { kThere, kPreempted, kLater };
  Room make_room(const SequenceGroup& group, SchedulerOutputs& outputs, int32_t& num_seqs_behind);
  bool schedule_running(Budget& budget, SchedulerOutputs& outputs);
  void schedule_swapped(Budget& budget, SchedulerOutputs& outputs);
  void schedule_encodes(Budget& budget, SchedulerOutputs& outputs);
  void schedule_waiting(Budget& budget, SchedulerOutputs& outputs);
  enum class Admission : uint8_t { kAdmitted, kNoRoom, kNoRows };
  Admission try_admit(SequenceGroup& group, Budget& budget, SchedulerOutputs& outputs);
  void limit_encodes(Budget& budget, const SchedulerOutputs& outputs) const;
  bool may_begin(const EncoderItem& item, Budget& budget, const SchedulerOutputs& outputs) const;
  bool may_begin_items(const SequenceGroup& group, const BlockSpaceManager::Request& request, Budget& budget,
                       const SchedulerOutputs& outputs) const;
  bool plan_encodes(SequenceGroup& group, Budget& budget, SchedulerOutputs& outputs);
  void plan_long_encode(const Budget& budget, SchedulerOutputs& outputs);
  TableRange group_tables(const SequenceGroup& group) const;
  TableRange item_tables(const SequenceGroup& group, size_t item) const;
  TableRange remote_tables(const SequenceGroup& group, size_t item) const;
  bool can_have_rows(SequenceGroup& group, BlockSpaceManager::Request& request) const;
  bool find_remote_rows(SequenceGroup& group, BlockSpaceManager::Request& request) const;
  void free_taken_rows(SequenceGroup& group, size_t item);
  bool needs_write(GroupId id, TableRange tables) const;
  void begin_writes(GroupId id, TableRange tables);
  bool shares(const BlockSpaceManager::Request& request, TableRange tables) const;
  void fill_tables(GroupId id, TableRange tables, Recycled<BlockTable>& filled) const;
  void fill_unwritten_tables(GroupId id, TableRange tables, Recycled<BlockTable>& filled) const;
  Consumers missing_writes(const SequenceGroup& group, size_t item) const;
  bool has_missing_writes(const SequenceGroup& group) const;
  void begin_item(SequenceGroup& group, size_t item, Consumers writes);
  void finish_items(size_t num_groups, size_t num_writes);
  void abandon_items();
  void free_used_rows(SequenceGroup& group, int32_t num_computed);
  int32_t num_promised_blocks() const;
  BlockSpaceManager::Request admission_request(const SequenceGroup& group) const;
  int32_t tokens_per_prefix_block() const;
  bool uses_prefixes(const SequenceGroup& group) const;
  void look_for_prefix(SequenceGroup& group, BlockSpaceManager::Request& request) const;
  void hash_blocks(const SequenceGroup& group, Sequence& seq, int32_t num_blocks) const;
  void remember_blocks(const SequenceGroup& group, Sequence& seq);
  struct SharedPositions {
    int32_t all = 0, media = 0;  // the latter: SequenceGroup::num_cached_media
  };
  SharedPositions shared_positions(const SequenceGroup& group, const BlockSpaceManager::Request& request) const;
  void choose_rows(const SequenceGroup& group, int32_t max_rows);
  void plan(SequenceGroup& group, Budget& budget, SchedulerOutputs& outputs);
  void plan_items(const SequenceGroup& group, SequenceGroupMetadata& metadata) const;
  void fill_encode(const SequenceGroup& group, size_t item, Consumers writes, PlannedEncode& encode,
                   SchedulerOutputs& outputs) const;
  static void fill_sequence_data(const SequenceGroup& group, const Rows& rows, SequenceData& data);
  static void fill_positions(const SequenceGroup& group, const Rows& rows, SequenceData& data);
  void fork_recomputed(SequenceGroup& group);
  void preempt_last(SchedulerOutputs& outputs);
  void to_waiting(SequenceGroup& group);
  void release_blocks(SequenceGroup& group);
  std::string encoder_block_text(std::span<const EncoderItem> items) const;
  Status check_group(const SequenceGroup& group) const;
  Status check_items(const SequenceGroup& group) const;

  static void insert_in_order(Queue& queue, SequenceGroup& group);
  Queue& queue_of(SequenceGroup::State state);

  Options options_;
  BlockSpaceManager blocks_;
  const Clock& clock_;
  absl::flat_hash_map<GroupId, std::unique_ptr<SequenceGroup>> groups_;
  Queue waiting_, running_, swapped_;
  SequenceGroup* long_encode_ = nullptr;  // a running group
  size_t long_item_ = 0;                  // of its items
  bool long_encode_has_begun_ = false;    // a step with it was executed
  std::optional<int32_t> max_encoder_tokens_beside_, max_injected_tokens_beside_;
  CacheCounts cache_counts_;
  std::vector<GroupId> finished_;
  // Groups with items that plans in flight encode, in the order of plans; some may be gone already.
  std::vector<GroupId> encoding_;
  // Plans in flight, and of each how many of encoding_ and of the block manager's begun writes are its own.
  struct InFlight {
    size_t num_encoding = 0, num_writes = 0;
  };
  std::vector<InFlight> in_flight_;                    // in their order
  int32_t num_busy_ = 0;                               // groups; 0 unless has_several_plans()
  std::vector<Rows> rows_;                             // of the group being planned
  std::vector<BlockSpaceManager::SlotRequest> slots_;  // slots that rows_ need
  std::vector<std::unique_ptr<Sequence>> spare_seqs_;  // removed sequences; kept to reuse their memory
  int32_t num_spare_tokens_ = 0;                       // of the last plan's budget
  uint64_t next_arrival_ = 0;
  uint64_t next_seq_id_ = 1;
};

}  // namespace transept
