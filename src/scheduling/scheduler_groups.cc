// What happens to groups between steps, and preemption.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "scheduling/scheduler.h"

namespace transept {

using State = SequenceGroup::State;

Status Scheduler::Options::validate() const {
  if (max_steps_in_flight < 1) {
    return field_error("max_steps_in_flight", str_cat("must be at least 1, is ", max_steps_in_flight));
  }
  if (max_num_seqs < 1) return field_error("max_num_seqs", str_cat("must be at least 1, is ", max_num_seqs));
  if (max_num_encoder_tokens < 1) {
    return field_error("max_num_encoder_tokens", str_cat("must be at least 1, is ", max_num_encoder_tokens));
  }
  if (max_num_injected_tokens < 0) {
    return field_error("max_num_injected_tokens", str_cat("must not be negative, is ", max_num_injected_tokens));
  }
  if (max_num_batched_tokens < max_num_seqs) {
    return field_error("max_num_batched_tokens",
                       str_cat("must be at least max_num_seqs (", max_num_seqs,
                               "), so that every running sequence gets on, is ", max_num_batched_tokens));
  }
  return ok_status();
}

int32_t Scheduler::Options::injected_tokens() const {
  if (max_num_injected_tokens > 0) return max_num_injected_tokens;
  constexpr int64_t kTimes = 4;
  return static_cast<int32_t>(std::min<int64_t>(kTimes * max_num_encoder_tokens, std::numeric_limits<int32_t>::max()));
}

namespace {

BlockSpaceManager::Options with_sharing(BlockSpaceManager::Options options, bool shares_begun) {
  options.shares_begun = shares_begun;
  return options;
}

}  // namespace

Scheduler::Scheduler(const Options& options, const BlockSpaceManager::Options& block_options, const Clock& clock)
    : options_(options), blocks_(with_sharing(block_options, options.max_steps_in_flight == 1)), clock_(clock) {
  const Status status = options.validate();
  CHECK(status.ok(), error_message(status));
}

// ---- In and out

Status Scheduler::check_admission(std::span<const EncoderItem> items, int64_t max_tokens_per_seq,
                                  int64_t num_seqs) const {
  if (num_seqs > options_.max_num_seqs) {
    return invalid_argument("the request wants ", num_seqs, " sequences at once; max_num_seqs is ",
                            options_.max_num_seqs);
  }
  int64_t rows = 0;  // blocks of items' own tables
  for (const EncoderItem& item : items) {
    if (item.num_rows() > options_.max_num_encoder_tokens) {
      return invalid_argument("the encoder input has ", item.num_rows(), " tokens; max_num_encoder_tokens is ",
                              options_.max_num_encoder_tokens);
    }
    if (item.remote.has_value() && item.num_rows() > options_.injected_tokens()) {
      return invalid_argument("the encoder input has ", item.num_rows(), " rows; max_num_injected_tokens is ",
                              options_.injected_tokens());
    }
    if (has(item.consumers, Consumers::kSplice)) {
      rows += blocks_.num_blocks_for(TableOwner::kItem, item.num_positions());
    }
  }
  const int64_t encoder = rows + blocks_.num_blocks_for(TableOwner::kGroup, num_cross_positions(items));
  const int64_t self = blocks_.num_blocks_for(TableOwner::kSequence, max_tokens_per_seq);
  const int64_t available = blocks_.num_device_blocks() - blocks_.watermark_blocks() - blocks_.max_reserved_blocks();
  if (encoder + num_seqs * self <= available) return ok_status();
  return invalid_argument("the request may need ", encoder + num_seqs * self, " KV blocks of ", blocks_.block_size(),
                          " tokens (", encoder, " for the encoder input", encoder_block_text(items), " and ", num_seqs,
                          " x ", self, " for decoder sequences of up to ", max_tokens_per_seq, " tokens); there are ",
                          available);
}

// Says how many tokens a block of the encoder's side holds, if that is another number than on the decoder's side.
std::string Scheduler::encoder_block_text(std::span<const EncoderItem> items) const {
  std::string text;
  const auto add = [&](Consumers consumer, TableOwner owner, std::string_view what) {
    const bool has_some =
        std::any_of(items.begin(), items.end(), [&](const EncoderItem& item) { return has(item.consumers, consumer); });
    for (const int32_t spec : blocks_.specs_of(owner)) {
      const int32_t num_tokens = blocks_.tokens_per_block(spec);
      if (!has_some || num_tokens == blocks_.block_size()) continue;
      text += str_cat(text.empty() ? ", whose blocks hold " : " and ", num_tokens, " ", what);
    }
  };
  add(Consumers::kCross, TableOwner::kGroup, "tokens");
  add(Consumers::kSplice, TableOwner::kItem, "rows");
  return text.empty() ? "" : text + ",";
}

Status Scheduler::add_seq_group(std::unique_ptr<SequenceGroup> group) {
  CHECK(!groups_.contains(group->group_id()), "group ", group->group_id().value(), " is here already");
  RETURN_IF_ERROR(check_admission(group->items(), group->max_tokens_per_seq(), group->max_running_seqs()));
  const SequenceGroup* const before = group->continues().has_value() ? find(*group->continues()) : nullptr;
  group->arrival_index_ = before != nullptr ? before->arrival_index() : next_arrival_++;
  group->place_ = before != nullptr ? before->place_ : clock_.now() + std::chrono::seconds(group->priority());
  group->seqs_.front()->reserve(static_cast<int32_t>(group->max_tokens_per_seq()));
  insert_in_order(waiting_, *group);
  groups_.emplace(group->group_id(), std::move(group));
  return ok_status();
}

bool Scheduler::abort_seq_group(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end()) return false;
  SequenceGroup& group = *entry->second;
  if (group.is_busy_) {
    const bool was_aborted = std::exchange(group.is_aborted_, true);
    for (const auto& seq : group.seqs_) {
      if (!seq->is_finished()) seq->finish(FinishReason::kAbort);
    }
    return !was_aborted;
  }
  release_blocks(group);
  std::erase(queue_of(group.state_), &group);
  finished_.push_back(group_id);
  groups_.erase(entry);
  return true;
}

void Scheduler::free_finished_seq_groups() {
  std::erase_if(running_, [this](SequenceGroup* group) {
    if (!group->is_finished() || group->is_busy_) return false;
    const GroupId id = group->group_id();
    release_blocks(*group);
    finished_.push_back(id);
    groups_.erase(id);
    return true;
  });
}

SequenceGroup* Scheduler::find(GroupId group_id) const {
  const auto entry = groups_.find(group_id);
  return entry == groups_.end() ? nullptr : entry->second.get();
}

// ---- Plans in flight

void Scheduler::set_busy(SequenceGroup& group) {
  if (!has_several_plans() || group.is_busy_) return;
  group.is_busy_ = true;
  ++num_busy_;
}

void Scheduler::set_collected(SequenceGroup& group) {
  num_busy_ -= group.is_busy_ ? 1 : 0;
  group.is_busy_ = false;
}

void Scheduler::abandon_plans() {
  in_flight_.clear();
  abandon_items();
  if (num_busy_ == 0) return;
  for (SequenceGroup* group : running_) group->is_busy_ = false;
  num_busy_ = 0;
  free_finished_seq_groups();
}

// ---- Sequences

void Scheduler::mark_computed(const SchedulerOutputs& outputs, bool long_encode_ended) {
  const LongEncode& encode = outputs.long_encode;
  if (encode.runs && long_encode_ != nullptr && long_encode_->group_id() == encode.encode.group_id &&
      static_cast<int32_t>(long_item_) == encode.encode.item) {
    long_encode_has_begun_ = true;
    if (long_encode_ended) {
      begin_item(*long_encode_, long_item_, missing_writes(*long_encode_, long_item_));
      long_encode_ = nullptr;
    }
  }
  CHECK(!in_flight_.empty(), "no plan is in flight");
  // With one in flight also what a long encode began just now.
  const InFlight oldest =
      has_several_plans() ? in_flight_.front() : InFlight{encoding_.size(), blocks_.num_begun_writes()};
  in_flight_.erase(in_flight_.begin());
  finish_items(oldest.num_encoding, oldest.num_writes);
  for (const PlannedEncode& encode : outputs.encodes) {
    if (SequenceGroup* group = num_busy_ == 0 ? nullptr : find(encode.group_id)) set_collected(*group);
  }
  for (const SequenceGroupMetadata& metadata : outputs.groups) {
    SequenceGroup* group = find(metadata.group_id);
    if (group == nullptr) continue;
    set_collected(*group);
    group->was_computed_ = true;
    for (const SequenceData& data : metadata.seq_data) {
      Sequence* seq = group->find(data.seq_id);
      if (seq == nullptr || seq->is_finished()) continue;
      const int32_t num_rows = static_cast<int32_t>(data.token_ids.size()) - data.num_drafts;
      seq->set_num_computed_tokens(data.context_len + num_rows);
      seq->set_num_logits_tokens(std::max(seq->num_logits_tokens(), data.context_len + num_rows));
      if (uses_prefixes(*group)) remember_blocks(*group, *seq);
      if (group->has_rows_) free_used_rows(*group, seq->num_computed_tokens());
    }
  }
}

void Scheduler::settle_drafts(Sequence& seq, int32_t num_kept) {
  if (seq.is_finished()) return;
  seq.set_num_computed_tokens(seq.num_computed_tokens() + num_kept);
  seq.set_num_logits_tokens(std::max(seq.num_logits_tokens(), seq.num_computed_tokens()));
  blocks_.truncate(seq.id(), seq.num_computed_tokens());
}

// ---- Items

// One table of each group spec, if the group crosses anything.
Scheduler::TableRange Scheduler::group_tables(const SequenceGroup& group) const {
  return {0, group.num_cross_tokens() > 0 ? blocks_.specs_of(TableOwner::kGroup).size() : 0};
}

// One table of each item spec, behind those of the group and of the items before it. REQUIRES: the item is spliced.
Scheduler::TableRange Scheduler::item_tables(const SequenceGroup& group, size_t item) const {
  const size_t num_specs = blocks_.specs_of(TableOwner::kItem).size();
  const size_t begin = group_tables(group).end + group.num_spliced_before(item) * num_specs;
  return {begin, begin + num_specs};
}

bool Scheduler::needs_write(GroupId id, TableRange tables) const {
  for (size_t i = tables.begin; i < tables.end; ++i) {
    if (blocks_.needs_write(id, i)) return true;
  }
  return false;
}

void Scheduler::begin_writes(GroupId id, TableRange tables) {
  for (size_t i = tables.begin; i < tables.end; ++i) {
    if (blocks_.needs_write(id, i)) blocks_.begin_write(id, i);
  }
}

// The consumers whose table still waits for this item's rows.
Consumers Scheduler::missing_writes(const SequenceGroup& group, size_t item) const {
  const Consumers consumers = group.items_[item].consumers;
  Consumers missing = Consumers::kNone;
  const bool is_unwritten = group.item_states_[item] == SequenceGroup::ItemState::kUnwritten;
  if (has(consumers, Consumers::kCross) && is_unwritten && needs_write(group.group_id(), group_tables(group))) {
    missing = missing | Consumers::kCross;
  }
  if (has(consumers, Consumers::kSplice) && needs_write(group.group_id(), item_tables(group, item))) {
    missing = missing | Consumers::kSplice;
  }
  return missing;
}

bool Scheduler::has_missing_writes(const SequenceGroup& group) const {
  for (size_t i = 0; i < group.items_.size(); ++i) {
    if (missing_writes(group, i) != Consumers::kNone) return true;
  }
  return false;
}

// The planned step writes the item's rows to the tables of these consumers. The cross tables are complete with the last
// of the items that are crossed.
void Scheduler::begin_item(SequenceGroup& group, size_t item, Consumers writes) {
  if (has(writes, Consumers::kCross)) {
    group.item_states_[item] = SequenceGroup::ItemState::kBegun;
    bool is_last = true;
    for (size_t i = 0; i < group.items_.size(); ++i) {
      is_last &= !has(group.items_[i].consumers, Consumers::kCross) ||
                 group.item_states_[i] != SequenceGroup::ItemState::kUnwritten;
    }
    if (is_last) begin_writes(group.group_id(), group_tables(group));
  }
  if (has(writes, Consumers::kSplice)) begin_writes(group.group_id(), item_tables(group, item));
  encoding_.push_back(group.group_id());
}

// The plan that has so many of those was executed.
void Scheduler::finish_items(size_t num_groups, size_t num_writes) {
  blocks_.finish_writes(num_writes);
  for (size_t next = 0; next < num_groups; ++next) {
    SequenceGroup* group = find(encoding_[next]);
    if (group == nullptr) continue;
    for (size_t i = 0; i < group->item_states_.size(); ++i) {
      if (group->item_states_[i] != SequenceGroup::ItemState::kBegun) continue;
      group->item_states_[i] = SequenceGroup::ItemState::kWritten;
      free_taken_rows(*group, i);
    }
  }
  // Those that share with one of them wait no longer either.
  for (SequenceGroup* group : running_) {
    if (num_groups > 0 && group->awaits_items_) group->awaits_items_ = has_missing_writes(*group);
  }
  encoding_.erase(encoding_.begin(), encoding_.begin() + static_cast<std::ptrdiff_t>(num_groups));
}

// The steps in flight were not executed: what they were to encode is unencoded again, also for groups that share it.
void Scheduler::abandon_items() {
  blocks_.abandon_writes();
  if (encoding_.empty()) return;
  for (const GroupId id : encoding_) {
    SequenceGroup* group = find(id);
    if (group == nullptr) continue;
    for (SequenceGroup::ItemState& state : group->item_states_) {
      if (state == SequenceGroup::ItemState::kBegun) state = SequenceGroup::ItemState::kUnwritten;
    }
  }
  for (SequenceGroup* group : running_) group->awaits_items_ = has_missing_writes(*group);
  encoding_.clear();
}

// Items whose rows stand among the first num_computed tokens are not read again, unless the group is recomputed.
void Scheduler::free_used_rows(SequenceGroup& group, int32_t num_computed) {
  group.has_rows_ = false;
  for (size_t i = 0; i < group.items_.size(); ++i) {
    const EncoderItem& item = group.items_[i];
    if (!has(item.consumers, Consumers::kSplice)) continue;
    if (num_computed >= item.splice_offset + item.num_positions()) {
      const TableRange tables = item_tables(group, i);
      for (size_t table = tables.begin; table < tables.end; ++table) blocks_.free_shared(group.group_id(), table);
    } else {
      group.has_rows_ = true;
    }
  }
}

// ---- Forks

Sequence& Scheduler::fork_sequence(SequenceGroup& group, SeqId parent_id) {
  const Sequence* parent = group.find(parent_id);
  CHECK(group.state_ == State::kRunning && parent != nullptr && !parent->is_finished());
  CHECK(parent->num_computed_tokens() == parent->num_tokens(), "fork before tokens are appended");
  std::unique_ptr<Sequence> child;
  if (spare_seqs_.empty()) {
    child = std::make_unique<Sequence>(*parent);
  } else {
    child = std::move(spare_seqs_.back());
    spare_seqs_.pop_back();
  }
  child->become_fork_of(*parent, next_seq_id(), group.next_index_++);
  blocks_.fork(parent_id, child->id());
  group.seqs_.push_back(std::move(child));
  return *group.seqs_.back();
}

void Scheduler::finish_sequence(SequenceGroup& group, SeqId seq_id, FinishReason reason) {
  Sequence* seq = group.find(seq_id);
  CHECK(seq != nullptr && reason != FinishReason::kNone);
  blocks_.free(seq_id);
  seq->finish(reason);
}

void Scheduler::remove_sequence(SequenceGroup& group, SeqId seq_id) {
  const auto entry =
      std::find_if(group.seqs_.begin(), group.seqs_.end(), [&](const auto& seq) { return seq->id() == seq_id; });
  CHECK(entry != group.seqs_.end());
  blocks_.free(seq_id);
  spare_seqs_.push_back(std::move(*entry));
  group.seqs_.erase(entry);
}

// ---- Preemption

// The youngest running group makes room: one sequence by recompute, several by swapping, as the mode says.
void Scheduler::preempt_last(SchedulerOutputs& outputs) {
  SequenceGroup& group = *running_.back();
  running_.pop_back();
  ++group.num_preemptions_;
  ++outputs.num_preempted;
  const bool wants_swap = options_.preemption_mode == PreemptionMode::kSwap ||
                          (options_.preemption_mode == PreemptionMode::kAuto && group.num_unfinished() > 1);
  if (wants_swap && group.fork_at_ == 0 && blocks_.can_swap_out(group.group_id())) {
    blocks_.swap_out(group.group_id(), outputs.moves.swap_out);
    group.state_ = State::kSwapped;
    insert_in_order(swapped_, group);
    ++outputs.num_swapped_out;
  } else {
    to_waiting(group);
  }
}

// Nothing of it stays in either pool; its tokens do, and it will be encoded and fed again.
void Scheduler::to_waiting(SequenceGroup& group) {
  release_blocks(group);
  for (const auto& seq : group.seqs_) {
    if (!seq->is_finished()) seq->set_num_computed_tokens(0);
  }
  group.fork_at_ = 0;
  group.state_ = State::kWaiting;
  insert_in_order(waiting_, group);
}

void Scheduler::release_blocks(SequenceGroup& group) {
  if (&group == long_encode_) long_encode_ = nullptr;
  group.awaits_items_ = false;
  for (const auto& seq : group.seqs_) blocks_.free(seq->id());
  blocks_.free_shared(group.group_id());
}

void Scheduler::insert_in_order(Queue& queue, SequenceGroup& group) {
  const auto place = std::upper_bound(queue.begin(), queue.end(), &group,
                                      [](const auto* a, const auto* b) { return a->comes_before(*b); });
  queue.insert(place, &group);
}

Scheduler::Queue& Scheduler::queue_of(State state) {
  if (state == State::kRunning) return running_;
  return state == State::kSwapped ? swapped_ : waiting_;
}

}  // namespace transept
