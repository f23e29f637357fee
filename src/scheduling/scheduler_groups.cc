// What happens to groups between steps, and preemption.
#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"
#include "scheduling/scheduler.h"

namespace transept {

using State = SequenceGroup::State;

Status Scheduler::Options::validate() const {
  if (max_num_seqs < 1) return field_error("max_num_seqs", str_cat("must be at least 1, is ", max_num_seqs));
  if (max_num_encoder_tokens < 1) {
    return field_error("max_num_encoder_tokens", str_cat("must be at least 1, is ", max_num_encoder_tokens));
  }
  if (max_num_batched_tokens < max_num_seqs) {
    return field_error("max_num_batched_tokens",
                       str_cat("must be at least max_num_seqs (", max_num_seqs,
                               "), so that every running sequence gets on, is ", max_num_batched_tokens));
  }
  return ok_status();
}

Scheduler::Scheduler(const Options& options, const BlockSpaceManager::Options& block_options, const Clock& clock)
    : options_(options), blocks_(block_options), cross_spec_(blocks_.first_spec(TableOwner::kGroup)), clock_(clock) {
  const Status status = options.validate();
  CHECK(status.ok(), error_message(status));
}

// ---- In and out

Status Scheduler::check_admission(int64_t num_encoder_tokens, int64_t max_tokens_per_seq, int64_t num_seqs) const {
  if (num_seqs > options_.max_num_seqs) {
    return invalid_argument("the request wants ", num_seqs, " sequences at once; max_num_seqs is ",
                            options_.max_num_seqs);
  }
  if (num_encoder_tokens > options_.max_num_encoder_tokens) {
    return invalid_argument("the encoder input has ", num_encoder_tokens, " tokens; max_num_encoder_tokens is ",
                            options_.max_num_encoder_tokens);
  }
  const int64_t cross = num_encoder_tokens > 0 ? blocks_.num_blocks_for(cross_spec_, num_encoder_tokens) : 0;
  const int64_t self = blocks_.num_sequence_blocks(max_tokens_per_seq);
  const int64_t available = blocks_.num_device_blocks() - blocks_.watermark_blocks();
  if (cross + num_seqs * self > available) {
    return invalid_argument("the request may need ", cross + num_seqs * self, " KV blocks of ", blocks_.block_size(),
                            " tokens (", cross, " for the encoder input and ", num_seqs, " x ", self,
                            " for decoder sequences of up to ", max_tokens_per_seq, " tokens); there are ", available);
  }
  return ok_status();
}

Status Scheduler::add_seq_group(std::unique_ptr<SequenceGroup> group) {
  CHECK(!groups_.contains(group->group_id()), "group ", group->group_id().value(), " is here already");
  RETURN_IF_ERROR(check_admission(group->num_encoder_tokens(), group->max_tokens_per_seq(), group->max_running_seqs()));
  const SequenceGroup* const before = group->continues().has_value() ? find(*group->continues()) : nullptr;
  group->arrival_index_ = before != nullptr ? before->arrival_index() : next_arrival_++;
  group->seqs_.front()->reserve(static_cast<int32_t>(group->max_tokens_per_seq()));
  insert_by_arrival(waiting_, *group);
  groups_.emplace(group->group_id(), std::move(group));
  return ok_status();
}

bool Scheduler::abort_seq_group(GroupId group_id) {
  const auto entry = groups_.find(group_id);
  if (entry == groups_.end()) return false;
  SequenceGroup& group = *entry->second;
  release_blocks(group);
  std::erase(queue_of(group.state_), &group);
  finished_.push_back(group_id);
  groups_.erase(entry);
  return true;
}

void Scheduler::free_finished_seq_groups() {
  std::erase_if(running_, [this](SequenceGroup* group) {
    if (!group->is_finished()) return false;
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

// ---- Sequences

void Scheduler::mark_computed(const SchedulerOutputs& outputs, bool long_encode_ended) {
  const LongEncode& encode = outputs.long_encode;
  if (encode.runs && long_encode_ != nullptr && long_encode_->group_id() == encode.group_id) {
    long_encode_has_begun_ = true;
    if (long_encode_ended) {
      blocks_.begin_writes(long_encode_->group_id());
      long_encode_ = nullptr;
    }
  }
  blocks_.finish_writes();
  for (const SequenceGroupMetadata& metadata : outputs.groups) {
    SequenceGroup* group = find(metadata.group_id);
    if (group == nullptr) continue;
    group->was_computed_ = true;
    for (const SequenceData& data : metadata.seq_data) {
      Sequence* seq = group->find(data.seq_id);
      if (seq == nullptr || seq->is_finished()) continue;
      const int32_t num_rows = static_cast<int32_t>(data.token_ids.size());
      seq->set_num_computed_tokens(data.context_len + num_rows);
      seq->set_num_logits_tokens(std::max(seq->num_logits_tokens(), data.context_len + num_rows));
    }
  }
}

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
    insert_by_arrival(swapped_, group);
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
  insert_by_arrival(waiting_, group);
}

void Scheduler::release_blocks(SequenceGroup& group) {
  if (&group == long_encode_) long_encode_ = nullptr;
  for (const auto& seq : group.seqs_) blocks_.free(seq->id());
  blocks_.free_shared(group.group_id());
}

void Scheduler::insert_by_arrival(Queue& queue, SequenceGroup& group) {
  const auto place = std::upper_bound(queue.begin(), queue.end(), &group, [](const auto* a, const auto* b) {
    return a->arrival_index() < b->arrival_index();
  });
  queue.insert(place, &group);
}

Scheduler::Queue& Scheduler::queue_of(State state) {
  if (state == State::kRunning) return running_;
  return state == State::kSwapped ? swapped_ : waiting_;
}

}  // namespace transept
