// Planning a step. What happens to groups between steps is in scheduler_groups.cc.
#include "scheduling/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"
#include "scheduling/plan_item.h"

namespace transept {

void Scheduler::schedule(SchedulerOutputs& outputs) {
  outputs.clear();
  if (!has_several_plans()) abandon_plans();
  CHECK(may_schedule(), "a plan more than may be in flight");
  const InFlight before{encoding_.size(), blocks_.num_begun_writes()};
  Budget budget{options_.max_num_batched_tokens, options_.max_num_encoder_tokens, options_.injected_tokens(),
                options_.max_num_seqs};
  // Who was preempted just now would only be in the way of those for whom it made room.
  const bool has_room = schedule_running(budget, outputs) && outputs.num_preempted == 0;
  if (has_room) schedule_swapped(budget, outputs);
  limit_encodes(budget, outputs);
  schedule_encodes(budget, outputs);
  if (has_room) schedule_waiting(budget, outputs);
  if (long_encode_ != nullptr) plan_long_encode(budget, outputs);
  num_spare_tokens_ = budget.tokens;

  outputs.num_running = static_cast<int32_t>(running_.size());
  outputs.num_waiting = static_cast<int32_t>(waiting_.size());
  outputs.num_swapped = static_cast<int32_t>(swapped_.size());
  // Nobody executes an empty plan: what is gone stays on the list for the next one.
  if (outputs.empty()) return;
  in_flight_.push_back({encoding_.size() - before.num_encoding, blocks_.num_begun_writes() - before.num_writes});
  outputs.finished.assign(finished_.begin(), finished_.end());
  finished_.clear();
  blocks_.take_freed_blocks(outputs.moves);
}

// The slot before the first draft is new, so that the block is the sequence's own already.
int32_t Scheduler::add_drafts(SchedulerOutputs& outputs, size_t group_idx, size_t seq_idx,
                              std::span<const int32_t> drafts) {
  SequenceGroupMetadata& metadata = outputs.groups[group_idx];
  SequenceData& data = metadata.seq_data[seq_idx];
  CHECK(data.sampled && data.num_drafts == 0 && data.token_ids.size() == 1, "no row that drafts could follow");
  const int32_t first = data.context_len + 1;
  CHECK(first + std::ssize(drafts) < find(metadata.group_id)->max_tokens_per_seq(), "drafts past the longest answer");
  auto count = std::min(static_cast<int32_t>(drafts.size()), num_spare_tokens_);
  const auto missing = [&] {
    return blocks_.num_blocks_for(TableOwner::kSequence, int64_t{first} + count) -
           blocks_.num_blocks_for(TableOwner::kSequence, blocks_.num_slots(data.seq_id));
  };
  while (count > 0 && missing() > blocks_.num_available_device_blocks()) --count;
  if (count == 0) return 0;
  const int32_t num_slots = first + count - blocks_.num_slots(data.seq_id);
  if (num_slots > 0) {
    blocks_.append_slots(data.seq_id, num_slots, outputs.moves.copy);
    blocks_.take_freed_blocks(outputs.moves);  // of what was evicted: the next plan would poison the draft's own
  }
  const size_t num_specs = blocks_.specs_of(TableOwner::kSequence).size();
  for (size_t i = 0; i < num_specs; ++i) {
    const std::span<const BlockId> table = blocks_.get_block_table(data.seq_id, i);
    metadata.sequence_tables[seq_idx * num_specs + i].assign(table.begin(), table.end());
  }
  data.token_ids.insert(data.token_ids.end(), drafts.begin(), drafts.begin() + count);
  data.num_drafts = count;
  outputs.num_decoder_tokens += count;
  outputs.num_draft_tokens += count;
  num_spare_tokens_ -= count;
  return count;
}

// Of so many groups, those that one of `num_plans` takes.
int32_t Scheduler::share_of(size_t num_groups, int32_t num_plans) {
  return static_cast<int32_t>(ceil_div(static_cast<int64_t>(num_groups), num_plans));
}

// A plan without rows is not executed, and its moves would be lost: while others are in flight, a group of this plan
// has to have rows already.
bool Scheduler::may_preempt(const SchedulerOutputs& outputs) const {
  return !running_.back()->is_busy_ && (num_busy_ == 0 || !outputs.groups.empty());
}

// For the group's slots_: the youngest groups are preempted, which may come to the group itself. kLater: one that would
// have to be is in flight.
Scheduler::Room Scheduler::make_room(const SequenceGroup& group, SchedulerOutputs& outputs, int32_t& num_seqs_behind) {
  while (!blocks_.can_append_slots(slots_)) {
    if (!may_preempt(outputs)) return Room::kLater;
    const bool is_last = running_.back() == &group;
    if (!is_last) num_seqs_behind -= running_.back()->num_unfinished();
    CHECK(!is_last || running_.size() > 1, "group ", group.group_id().value(),
          " is alone and does not fit: admission was wrong");
    preempt_last(outputs);
    if (is_last) return Room::kPreempted;
  }
  return Room::kThere;
}

// Oldest first, and the plan's share of them; each running sequence gets one row at least. Out of blocks: the youngest
// group makes room. False: room will be made when a plan in flight was collected, and nobody else may take it.
bool Scheduler::schedule_running(Budget& budget, SchedulerOutputs& outputs) {
  int32_t num_seqs_behind = 0;  // in groups that are still to be planned: a row each is theirs
  size_t num_free = 0;
  for (const SequenceGroup* group : running_) {
    if (group->is_busy_) continue;
    num_seqs_behind += group->num_unfinished();
    ++num_free;
  }
  bool has_room = true;
  // No more than its part of all, so that plans become equal; and of those that no plan has no more than leaves some
  // for each plan that may still be made.
  int32_t num_left = std::min(share_of(running_.size(), options_.max_steps_in_flight),
                              share_of(num_free, options_.max_steps_in_flight - num_steps_in_flight()));
  for (size_t i = 0; i < running_.size() && num_left > 0 && has_room; ++i) {
    SequenceGroup& group = *running_[i];
    if (group.is_busy_) continue;
    num_seqs_behind -= group.num_unfinished();
    if (group.awaits_items_) continue;
    fork_recomputed(group);
    choose_rows(group, budget.tokens - num_seqs_behind);
    const Room room = make_room(group, outputs, num_seqs_behind);
    has_room = room != Room::kLater;
    if (room != Room::kThere) continue;
    plan(group, budget, outputs);
    --num_left;
  }
  for (const SequenceGroup* group : running_) budget.seqs -= group->max_running_seqs();
  return has_room;
}

void Scheduler::schedule_swapped(Budget& budget, SchedulerOutputs& outputs) {
  while (!swapped_.empty()) {
    SequenceGroup& group = *swapped_.front();
    if (group.max_running_seqs() > budget.seqs || group.num_unfinished() > budget.tokens) return;
    if (blocks_.can_swap_in(group.group_id()) != AllocStatus::kOk) {
      // Waiting for room helps only if somebody will leave it; a recompute asks for less.
      if (!running_.empty()) return;
      swapped_.erase(swapped_.begin());
      to_waiting(group);
      continue;
    }
    blocks_.swap_in(group.group_id(), outputs.moves.swap_in);
    swapped_.erase(swapped_.begin());
    group.state_ = SequenceGroup::State::kRunning;
    insert_in_order(running_, group);
    ++outputs.num_swapped_in;
    budget.seqs -= group.max_running_seqs();
    choose_rows(group, budget.tokens);
    // There is room for one slot a sequence. Who wants more (the tails of a recompute) gets on in the next step.
    if (blocks_.can_append_slots(slots_)) plan(group, budget, outputs);
  }
}

// In their order, up to the plan's share of them or the first one that does not fit, and never past an earlier one in
// the host pool.
void Scheduler::schedule_waiting(Budget& budget, SchedulerOutputs& outputs) {
  size_t num_left = 0, next = 0;
  const int32_t most = share_of(waiting_.size(), options_.max_steps_in_flight);
  for (; next < waiting_.size() && outputs.num_admitted < most; ++next) {
    SequenceGroup* group = waiting_[next];
    if (!swapped_.empty() && swapped_.front()->comes_before(*group)) break;
    const Admission admission = try_admit(*group, budget, outputs);
    if (admission == Admission::kNoRoom) break;
    if (admission == Admission::kNoRows) {
      waiting_[num_left++] = group;
    } else {
      ++outputs.num_admitted;
    }
  }
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(num_left),
                 waiting_.begin() + static_cast<std::ptrdiff_t>(next));
}

// Items of groups that run already: those that their first step had no room for.
void Scheduler::schedule_encodes(Budget& budget, SchedulerOutputs& outputs) {
  for (SequenceGroup* group : running_) {
    if (!group->awaits_items_ || group->is_busy_ || group == long_encode_) continue;
    if (!plan_encodes(*group, budget, outputs) || group->is_busy_) continue;
    if (budget.tokens < group->num_unfinished()) continue;
    choose_rows(*group, budget.tokens);
    slots_.clear();  // allocated at admission
    plan(*group, budget, outputs);
  }
}

Scheduler::Admission Scheduler::try_admit(SequenceGroup& group, Budget& budget, SchedulerOutputs& outputs) {
  if (group.max_running_seqs() > budget.seqs || budget.tokens < 1) return Admission::kNoRoom;
  group.holds_rows_ = false;
  BlockSpaceManager::Request request = admission_request(group);
  if (!can_have_rows(group, request)) {
    outputs.without_rows.push_back(group.group_id());
    return Admission::kNoRows;
  }
  if (blocks_.awaits_shared(request)) return Admission::kNoRoom;
  if (!may_begin_items(group, request, budget, outputs)) return Admission::kNoRoom;
  look_for_prefix(group, request);
  const int32_t num_tail_blocks = request.num_blocks_ahead;
  const int32_t num_promised = num_promised_blocks();
  request.num_blocks_ahead += num_promised;
  const AllocStatus status = blocks_.can_allocate(request);
  CHECK(status != AllocStatus::kNever || num_promised > 0, "a group was taken that can never be admitted");
  if (status != AllocStatus::kOk) {
    // Nobody runs who could leave room: what is in the way are reservations, and idle rows that it would need itself.
    // The reservations may be those of groups behind it.
    if (group.has_remote_items_ && running_.empty() && swapped_.empty()) {
      outputs.without_rows.push_back(group.group_id());
      return Admission::kNoRows;
    }
    return Admission::kNoRoom;
  }

  const int32_t num_found = blocks_.find_prefix(request.prefix) * tokens_per_prefix_block();
  if (!group.was_scheduled_) {
    const SharedPositions shared = shared_positions(group, request);
    group.num_cached_tokens_ = shared.all + num_found;
    group.num_cached_media_ = shared.media;
  }
  const bool is_any_new = blocks_.allocate(request);
  if (!group.items_.empty()) cache_counts_.num_misses += is_any_new ? 1 : 0;
  if (!group.items_.empty() && !is_any_new) ++outputs.num_encoder_cache_hits;
  if (uses_prefixes(group)) {
    cache_counts_.num_prefix_queries += request.num_tokens;
    cache_counts_.num_prefix_hits += num_found;
    Sequence& first = *group.find(request.seq_id);
    first.set_num_computed_tokens(num_found);
    first.set_num_remembered_blocks(num_found / tokens_per_prefix_block());
  }
  std::fill(group.item_states_.begin(), group.item_states_.end(), SequenceGroup::ItemState::kUnwritten);
  group.awaits_items_ = has_missing_writes(group);
  group.has_rows_ = std::any_of(group.items_.begin(), group.items_.end(),
                                [](const EncoderItem& item) { return has(item.consumers, Consumers::kSplice); });
  group.fork_at_ = group.num_unfinished() > 1 ? request.num_tokens : 0;
  group.num_tail_blocks_ = num_tail_blocks;
  group.state_ = SequenceGroup::State::kRunning;
  insert_in_order(running_, group);
  budget.seqs -= group.max_running_seqs();
  if (!group.was_scheduled_) {
    group.was_scheduled_ = true;
    group.first_scheduled_time_ = clock_.now();
  }
  if (!plan_encodes(group, budget, outputs) || group.is_busy_) return Admission::kAdmitted;
  choose_rows(group, budget.tokens);
  slots_.clear();  // allocated already
  plan(group, budget, outputs);
  return Admission::kAdmitted;
}

// What groups may encode and take in this step, now that those that decode are planned.
void Scheduler::limit_encodes(Budget& budget, const SchedulerOutputs& outputs) const {
  if (outputs.num_seqs == 0) return;
  budget.is_beside = max_encoder_tokens_beside_.has_value() || max_injected_tokens_beside_.has_value();
  budget.encoder_tokens = std::min(budget.encoder_tokens, max_encoder_tokens_beside_.value_or(budget.encoder_tokens));
  budget.injected_tokens =
      std::min(budget.injected_tokens, max_injected_tokens_beside_.value_or(budget.injected_tokens));
}

// At once, or (the first of a step) as a long encode. Nothing begins beside one that goes on: the rank has one room for
// rows. Rows of remote items have a budget of their own: they are there, and cost less than their encode.
bool Scheduler::may_begin(const EncoderItem& item, Budget& budget, const SchedulerOutputs& outputs) const {
  const bool fits = item.num_rows() <= budget.rows_of(item);
  if (!budget.is_beside) return fits;
  return long_encode_ == nullptr && (fits || outputs.encodes.empty());
}

// Whether all of these tables are there already.
bool Scheduler::shares(const BlockSpaceManager::Request& request, TableRange tables) const {
  for (size_t i = tables.begin; i < tables.end; ++i) {
    if (!blocks_.shares(request, i)) return false;
  }
  return true;
}

// Whether the first of the items that a new group must encode or take itself may begin in this step; true: there is
// none.
bool Scheduler::may_begin_items(const SequenceGroup& group, const BlockSpaceManager::Request& request, Budget& budget,
                                const SchedulerOutputs& outputs) const {
  for (size_t i = 0; i < group.items_.size(); ++i) {
    const Consumers consumers = group.items_[i].consumers;
    const bool crosses = has(consumers, Consumers::kCross) && !shares(request, group_tables(group));
    const bool splices = has(consumers, Consumers::kSplice) && !shares(request, item_tables(group, i));
    if (crosses || splices) return may_begin(group.items_[i], budget, outputs);
  }
  return true;
}

// Plans the items that are not encoded or taken yet, as far as the step's budget goes. Returns whether that is all of
// them, so that the group may feed rows.
bool Scheduler::plan_encodes(SequenceGroup& group, Budget& budget, SchedulerOutputs& outputs) {
  if (!group.awaits_items_) return true;
  for (size_t i = 0; i < group.items_.size(); ++i) {
    const Consumers writes = missing_writes(group, i);
    if (writes == Consumers::kNone) continue;
    const EncoderItem& item = group.items_[i];
    if (!may_begin(item, budget, outputs)) return false;
    if (item.num_rows() > budget.rows_of(item)) {
      long_encode_ = &group;
      long_item_ = i;
      long_encode_has_begun_ = false;
      return false;
    }
    fill_encode(group, i, writes, outputs.encodes.push(), outputs);
    begin_item(group, i, writes);
    set_busy(group);
    outputs.count_rows(item);
    budget.rows_of(item) -= item.num_rows();
  }
  return true;
}

void Scheduler::plan_long_encode(const Budget& budget, SchedulerOutputs& outputs) {
  const SequenceGroup& group = *long_encode_;
  LongEncode& encode = outputs.long_encode;
  encode.runs = true;
  encode.begins = !long_encode_has_begun_;
  encode.to_the_end = !budget.is_beside;
  encode.encode.group_id = group.group_id();
  encode.encode.item = static_cast<int32_t>(long_item_);
  encode.encode.source = group.items()[long_item_].remote.has_value() ? RowSource::kResident : RowSource::kEncode;
  if (!encode.begins) return;
  fill_encode(group, long_item_, missing_writes(group, long_item_), encode.encode, outputs);
  outputs.count_rows(group.items()[long_item_]);
}

// Blocks that the tails of recomputed groups will take when their common prefix is done.
int32_t Scheduler::num_promised_blocks() const {
  int32_t count = 0;
  for (const SequenceGroup* group : running_) count += group->fork_at_ > 0 ? group->num_tail_blocks_ : 0;
  return count;
}

// One sequence: everything it has so far. Several (a recompute): what they have in common, once; they fork after it,
// and one token at least is left to each, because its logits are wanted.
BlockSpaceManager::Request Scheduler::admission_request(const SequenceGroup& group) const {
  const Sequence* first = nullptr;
  int32_t num_common = 0;
  for (const auto& seq : group.seqs()) {
    if (seq->is_finished()) continue;
    if (first == nullptr) {
      first = seq.get();
      num_common = first->num_tokens();
      continue;
    }
    const std::span<const int32_t> a = first->token_ids(), b = seq->token_ids();
    const auto parted =
        std::mismatch(a.begin(), a.begin() + std::min(num_common, first->num_tokens()), b.begin(), b.end());
    num_common =
        std::min({static_cast<int32_t>(parted.first - a.begin()), first->num_tokens() - 1, seq->num_tokens() - 1});
  }
  CHECK(first != nullptr && num_common > 0);

  BlockSpaceManager::Request request;
  request.group_id = group.group_id();
  request.seq_id = first->id();
  request.num_tokens = num_common;
  request.max_tokens = static_cast<int32_t>(group.max_tokens_per_seq());
  const auto add_shared = [&](TableOwner owner, int32_t num_tokens, const std::optional<ContentDigest>& digest) {
    for (const int32_t spec : blocks_.specs_of(owner)) request.shared.push_back({spec, num_tokens, digest});
  };
  if (group.num_cross_tokens() > 0) add_shared(TableOwner::kGroup, group.num_cross_tokens(), group.cross_digest());
  for (size_t i = 0; i < group.items().size(); ++i) {
    if (!has(group.items()[i].consumers, Consumers::kSplice)) continue;
    add_shared(TableOwner::kItem, group.items()[i].num_positions(), group.rows_digest(i));
  }
  for (size_t i = 0; group.holds_rows_ && i < group.items().size(); ++i) {
    if (!group.items()[i].remote.has_value() || has(group.items()[i].consumers, Consumers::kSplice)) continue;
    add_shared(TableOwner::kItem, group.items()[i].num_positions(), group.rows_digest(i));
  }
  const int64_t num_full = blocks_.num_full_sequence_blocks(num_common);
  int64_t num_tails = 0;
  for (const auto& seq : group.seqs()) {
    if (!seq->is_finished()) num_tails += blocks_.num_blocks_for(TableOwner::kSequence, seq->num_tokens()) - num_full;
  }
  const int64_t num_first = blocks_.num_blocks_for(TableOwner::kSequence, num_common);
  request.num_blocks_ahead = static_cast<int32_t>(num_tails - (num_first - num_full));
  return request;
}

// The common prefix of a recompute is in the cache: the other sequences go on from it.
void Scheduler::fork_recomputed(SequenceGroup& group) {
  if (group.fork_at_ == 0) return;
  const Sequence* first = nullptr;
  for (const auto& seq : group.seqs_) {
    if (seq->is_finished()) continue;
    if (first == nullptr) {
      first = seq.get();
      if (first->num_computed_tokens() < group.fork_at_) return;
    } else {
      blocks_.fork(first->id(), seq->id());
      seq->set_num_computed_tokens(group.fork_at_);
    }
  }
  group.fork_at_ = 0;
}

// Which tokens the group feeds next, max_rows at most (one a sequence is always granted). A group's sequences reach
// their ends in the same step, because beams are chosen among all of them: if the ends do not all fit, nobody's last
// token is fed.
void Scheduler::choose_rows(const SequenceGroup& group, int32_t max_rows) {
  rows_.clear();
  int64_t num_left = 0;
  for (const auto& seq : group.seqs()) {
    if (seq->is_finished()) continue;
    const int32_t end = group.fork_at_ > 0 ? group.fork_at_ : seq->num_tokens();
    rows_.push_back({seq.get(), end - seq->num_computed_tokens()});
    CHECK(rows_.back().count > 0, "sequence ", seq->id().value(), " was given no token and has not ended");
    num_left += rows_.back().count;
    if (group.fork_at_ > 0) break;
  }
  CHECK(max_rows >= static_cast<int32_t>(rows_.size()), "more sequences than admitted");
  const bool all_fit = num_left <= max_rows;
  for (Rows& rows : rows_) {
    if (!all_fit) rows.count = std::min(rows.count - (group.fork_at_ > 0 ? 0 : 1), max_rows);
    max_rows -= rows.count;
  }
  std::erase_if(rows_, [](const Rows& rows) { return rows.count == 0; });

  slots_.clear();
  for (const Rows& rows : rows_) {
    const int32_t end = rows.seq->num_computed_tokens() + rows.count;
    slots_.push_back({rows.seq->id(), std::max(end - blocks_.num_slots(rows.seq->id()), 0)});
  }
}

// Puts the chosen rows into the plan, and takes their slots.
void Scheduler::plan(SequenceGroup& group, Budget& budget, SchedulerOutputs& outputs) {
  set_busy(group);
  for (const auto& [seq_id, num_tokens] : slots_) blocks_.append_slots(seq_id, num_tokens, outputs.moves.copy);

  const std::span<const int32_t> specs = blocks_.specs_of(TableOwner::kSequence);
  SequenceGroupMetadata& metadata = outputs.groups.push();
  metadata.group_id = group.group_id();
  for (const Rows& rows : rows_) {
    SequenceData& data = metadata.seq_data.push();
    fill_sequence_data(group, rows, data);
    for (size_t i = 0; i < specs.size(); ++i) {
      const std::span<const BlockId> table = blocks_.get_block_table(rows.seq->id(), i);
      BlockTable& table_copy = metadata.sequence_tables.push();
      table_copy.reserve(static_cast<size_t>(blocks_.num_blocks_for(specs[i], group.max_tokens_per_seq())));
      table_copy.assign(table.begin(), table.end());
    }
    metadata.is_prompt |= data.context_len < rows.seq->num_prompt_tokens();
    outputs.num_decoder_tokens += rows.count;
    budget.tokens -= rows.count;
    ++outputs.num_seqs;
  }
  plan_items(group, metadata);
}

void Scheduler::fill_tables(GroupId id, TableRange tables, Recycled<BlockTable>& filled) const {
  for (size_t i = tables.begin; i < tables.end; ++i) {
    const std::span<const BlockId> table = blocks_.get_shared_table(id, i);
    CHECK(!table.empty(), "rows of an item that was freed");
    filled.push().assign(table.begin(), table.end());
  }
}

// The others stay empty: another group has written them.
void Scheduler::fill_unwritten_tables(GroupId id, TableRange tables, Recycled<BlockTable>& filled) const {
  for (size_t i = tables.begin; i < tables.end; ++i) {
    BlockTable& table_copy = filled.push();
    if (!blocks_.needs_write(id, i)) continue;
    const std::span<const BlockId> table = blocks_.get_shared_table(id, i);
    table_copy.assign(table.begin(), table.end());
  }
}

// What the new rows read of the items.
void Scheduler::plan_items(const SequenceGroup& group, SequenceGroupMetadata& metadata) const {
  metadata.ranges.assign(group.layout().ranges.begin(), group.layout().ranges.end());
  if (group.items().empty()) return;
  metadata.num_cross_tokens = group.num_cross_tokens();
  fill_tables(group.group_id(), group_tables(group), metadata.group_tables);
  if (!group.was_computed_) metadata.encoder_token_ids = group.items().front().token_ids;
  if (!group.has_rows_) return;
  // Sequences fork behind the prompt, so only the first one feeds rows of it.
  const SequenceData& data = metadata.seq_data[0];
  const int32_t begin = data.context_len, end = begin + static_cast<int32_t>(data.token_ids.size());
  for (size_t i = 0; i < group.items().size(); ++i) {
    const EncoderItem& item = group.items()[i];
    const int32_t first = std::max(begin, item.splice_offset);
    const int32_t last = std::min(end, item.splice_offset + item.num_positions());
    if (!has(item.consumers, Consumers::kSplice) || first >= last) continue;
    PlannedSplice& splice = metadata.splices.push();
    splice.first_row = first - begin;
    splice.num_rows = last - first;
    splice.first_slot = first - item.splice_offset;
    fill_tables(group.group_id(), item_tables(group, i), splice.item_tables);
  }
}

// What an encode reads, and where its rows go.
void Scheduler::fill_encode(const SequenceGroup& group, size_t index, Consumers writes, PlannedEncode& encode,
                            SchedulerOutputs& outputs) const {
  const EncoderItem& item = group.items()[index];
  encode.group_id = group.group_id();
  encode.item = static_cast<int32_t>(index);
  plan_item(item, encode, outputs.bulk);
  if (item.remote.has_value()) {
    encode.source = RowSource::kResident;
    const std::span<const BlockId> rows = blocks_.get_shared_table(group.group_id(), remote_tables(group, index).begin);
    encode.row_blocks.assign(rows.begin(), rows.end());
  }
  encode.writes = writes;
  if (has(writes, Consumers::kCross)) {
    fill_unwritten_tables(group.group_id(), group_tables(group), encode.group_tables);
    encode.cross = cross_place(group.items(), index);
  }
  if (has(writes, Consumers::kSplice)) {
    fill_unwritten_tables(group.group_id(), item_tables(group, index), encode.item_tables);
  }
}

void Scheduler::fill_sequence_data(const SequenceGroup& group, const Rows& rows, SequenceData& data) {
  const Sequence& seq = *rows.seq;
  const int32_t begin = seq.num_computed_tokens();
  const std::span<const int32_t> ids =
      seq.token_ids().subspan(static_cast<size_t>(begin), static_cast<size_t>(rows.count));
  data.seq_id = seq.id();
  data.index = seq.index();
  data.context_len = begin;
  data.token_ids.assign(ids.begin(), ids.end());
  data.sampled = begin + rows.count == seq.num_tokens();
  data.first_logits_row = data.sampled ? rows.count - 1 : rows.count;
  const bool wants_prompt = group.params().prompt_logprobs.has_value() || group.params().score_only;
  // Row i predicts token i + 1: the prompt's last row predicts no token of the prompt.
  const int32_t first_wanted = std::max(begin, seq.num_logits_tokens());
  if (wants_prompt && seq.index() == 0 && first_wanted < seq.num_prompt_tokens() - 1) {
    data.first_logits_row = std::min(data.first_logits_row, first_wanted - begin);
  }
  if (!group.layout().prompt_positions.empty()) fill_positions(group, rows, data);
}

void Scheduler::fill_positions(const SequenceGroup& group, const Rows& rows, SequenceData& data) {
  const DecoderLayout& layout = group.layout();
  data.position_delta = layout.position_delta;
  const int32_t num_prompt = rows.seq->num_prompt_tokens(), begin = data.context_len;
  const int32_t end = std::min(begin + rows.count, num_prompt);
  if (begin >= end) return;
  for (auto axis = layout.prompt_positions.begin(); axis != layout.prompt_positions.end(); axis += num_prompt) {
    data.positions.insert(data.positions.end(), axis + begin, axis + end);
  }
}

}  // namespace transept
