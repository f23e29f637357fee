#include "engine/model_drafter.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "scheduling/plan_item.h"

namespace transept {
namespace {

// Others wait for them.
constexpr int32_t kEncodesAStep = 1;

BlockSpaceManager::Options block_options(const ExecutorInfo& info, const BlockSpaceManager::Options& like) {
  BlockSpaceManager::Options options;
  options.block_size = info.block_size;
  options.specs = info.tables;
  options.num_device_blocks = info.num_device_blocks;
  options.watermark = 0;
  options.share_identical_inputs = true;  // those of one group, in any case
  options.cache_inputs = like.cache_inputs;
  options.cache_ttl = like.cache_ttl;
  options.track_freed_blocks = like.track_freed_blocks;
  options.shuffle_seed = like.shuffle_seed;
  return options;
}

// Of what is shared with no other group, one that no content has.
ContentDigest digest_of(const SequenceGroup& group) {
  if (group.cross_digest().has_value()) return *group.cross_digest();
  ContentDigest digest;
  const uint64_t id = group.group_id().value();
  std::memcpy(digest.bytes.data(), &id, sizeof(id));
  return digest;
}

}  // namespace

ModelDrafter::ModelDrafter(DraftModel model, const BlockSpaceManager::Options& like, const Scheduler& scheduler,
                           const Clock& clock)
    : executor_(std::move(model.executor)),
      shares_encoder_(model.shares_encoder),
      scheduler_(scheduler),
      clock_(clock),
      blocks_(block_options(executor_->info(), like)) {}

bool ModelDrafter::may_draft(const SequenceGroup& group) const {
  if (is_broken_ || group.items().size() > 1 || !group.layout().ranges.empty()) return false;
  if (group.num_cross_tokens() > info().max_encoder_len) return false;
  if (!group.items().empty()) {
    const EncoderItem& item = group.items().front();
    if (item.consumers != Consumers::kCross || item.remote.has_value()) return false;
    if (!shares_encoder_ && item.num_rows() > info().max_num_encoder_tokens) return false;
  }
  return group.seqs().front()->num_prompt_tokens() < info().max_decoder_len;
}

void ModelDrafter::take_rows(GroupId group_id, std::vector<float> rows) {
  if (wants_rows()) rows_.push_back({group_id, std::move(rows)});
}

void ModelDrafter::begin_step() {
  ++num_engine_steps_;
  num_encodes_left_ = kEncodesAStep;
  seconds_ = 0;
  gone_.clear();
  for (const auto& [seq_id, state] : states_) {
    const SequenceGroup* group = scheduler_.find(state->of_group);
    const bool runs = group != nullptr && group->state() == SequenceGroup::State::kRunning;
    const Sequence* seq = runs ? group->find(seq_id) : nullptr;
    if (seq == nullptr || seq->is_finished()) gone_.push_back(seq_id);
  }
  for (const SeqId seq_id : gone_) drop(seq_id);
  write_rows();
}

// All sequences of the group take hold of the table, which no sequence encodes again.
void ModelDrafter::write_rows() {
  for (Rows& rows : rows_) {
    const SequenceGroup* group = scheduler_.find(rows.group_id);
    if (group == nullptr || group->state() != SequenceGroup::State::kRunning) continue;
    for (const auto& seq : group->seqs()) {
      if (!seq->is_finished()) state_of(*group, *seq, &rows.values);
    }
  }
  rows_.clear();
}

BlockSpaceManager::Request ModelDrafter::request_of(const SequenceGroup& group) const {
  BlockSpaceManager::Request request;
  request.group_id = GroupId(next_id_);
  request.seq_id = SeqId(next_id_);
  request.max_tokens = static_cast<int32_t>(std::min<int64_t>(group.max_tokens_per_seq(), info().max_decoder_len));
  if (group.num_cross_tokens() == 0) return request;
  for (const int32_t spec : blocks_.specs_of(TableOwner::kGroup)) {
    request.shared.push_back({spec, group.num_cross_tokens(), digest_of(group)});
  }
  return request;
}

// Null: there is no room, or no cross KV. rows: of the group's input; null: they are to be made here.
ModelDrafter::State* ModelDrafter::state_of(const SequenceGroup& group, const Sequence& seq,
                                            const std::vector<float>* rows) {
  if (const auto found = states_.find(seq.id()); found != states_.end()) return found->second.get();
  if (is_broken_) return nullptr;
  const BlockSpaceManager::Request request = request_of(group);
  for (size_t i = 0; i < request.shared.size(); ++i) {
    const int32_t num_tokens = blocks_.find_tokens(request, i);
    if (num_tokens != 0 && num_tokens != request.shared[i].num_tokens) return nullptr;
  }
  const bool may_write = rows != nullptr || (!shares_encoder_ && num_encodes_left_ > 0);
  if (!may_write && !blocks_.shares_all(request)) return nullptr;
  while (blocks_.can_allocate(request) != AllocStatus::kOk) {
    if (!make_room()) return nullptr;
  }
  if (!may_write && !blocks_.shares_all(request)) return nullptr;  // what made room had it
  ++next_id_;
  State* const state = states_.emplace(seq.id(), std::make_unique<State>()).first->second.get();
  state->of_group = group.group_id();
  state->group_id = request.group_id;
  state->seq_id = request.seq_id;
  state->last_step = num_engine_steps_;
  const bool is_new = blocks_.allocate(request);
  if (!is_new || write_cross(group, *state, rows)) return state;
  if (!is_broken_) drop(seq.id());
  return nullptr;
}

bool ModelDrafter::write_cross(const SequenceGroup& group, const State& state, const std::vector<float>* rows) {
  plan_.scheduled.clear();
  plan_.rows.clear();
  const EncoderItem& item = group.items().front();
  PlannedEncode& encode = plan_.scheduled.encodes.push();
  encode.group_id = state.group_id;
  encode.item = 0;
  encode.writes = encode.consumers = Consumers::kCross;
  if (rows != nullptr) {
    const int64_t width = info().spec.width_of(Consumers::kCross);
    if (std::ssize(*rows) != width * group.num_cross_tokens()) return false;
    encode.source = RowSource::kInjected;
    encode.num_positions = encode.num_rows = group.num_cross_tokens();
    encode.features.shape = {group.num_cross_tokens(), width};
    encode.features.begin = 0;
    plan_.scheduled.bulk = *rows;
  } else {
    plan_item(item, encode, plan_.scheduled.bulk);
    --num_encodes_left_;
  }
  encode.cross = cross_place(group.items(), 0);
  const size_t num_tables = blocks_.specs_of(TableOwner::kGroup).size();
  for (size_t i = 0; i < num_tables; ++i) {
    BlockTable& table = encode.group_tables.push();
    if (!blocks_.needs_write(state.group_id, i)) continue;
    const std::span<const BlockId> blocks = blocks_.get_shared_table(state.group_id, i);
    table.assign(blocks.begin(), blocks.end());
    blocks_.begin_write(state.group_id, i);
  }
  plan_.scheduled.num_encoder_tokens = encode.num_rows;
  if (!execute()) return false;
  blocks_.finish_writes();
  return true;
}

// What was fed beyond the first token that is another goes. The last token is fed in any case: its row gives the draft.
void ModelDrafter::follow(State& state, std::span<const int32_t> tokens) {
  const auto most = static_cast<int32_t>(std::min(std::ssize(state.fed), std::ssize(tokens) - 1));
  int32_t count = std::min(state.num_known, most);
  while (count < most && state.fed[static_cast<size_t>(count)] == tokens[static_cast<size_t>(count)]) ++count;
  blocks_.truncate(state.seq_id, count);
  state.fed.resize(static_cast<size_t>(count));
  state.num_known = count;
}

bool ModelDrafter::grow(const State& state, int32_t num_tokens) {
  const int32_t num_new = num_tokens - blocks_.num_slots(state.seq_id);
  const BlockSpaceManager::SlotRequest request{state.seq_id, num_new};
  while (!blocks_.can_append_slots({&request, 1})) {
    if (!make_room()) return false;
  }
  blocks_.append_slots(state.seq_id, num_new, plan_.scheduled.moves.copy);
  return true;
}

// Forgets the sequence that was not asked for the longest. False: all are of this step.
bool ModelDrafter::make_room() {
  const State* oldest = nullptr;
  SeqId seq_id{};
  for (const auto& [id, state] : states_) {
    if (state->last_step == num_engine_steps_) continue;
    if (oldest != nullptr && oldest->last_step <= state->last_step) continue;
    oldest = state.get();
    seq_id = id;
  }
  if (oldest == nullptr) return false;
  drop(seq_id);
  return true;
}

void ModelDrafter::drop(SeqId seq_id) {
  const auto entry = states_.find(seq_id);
  blocks_.free(entry->second->seq_id);
  blocks_.free_shared(entry->second->group_id);
  states_.erase(entry);
}

bool ModelDrafter::execute() {
  blocks_.take_freed_blocks(plan_.scheduled.moves);
  ++plan_.step;
  Status status = executor_->submit(plan_);
  if (status.ok()) status = executor_->collect(plan_.step, output_);
  if (status.ok()) return true;
  log_warning("the draft model has failed, and drafts nothing from here on: ", error_message(status));
  is_broken_ = true;
  runs_.clear();
  states_.clear();
  blocks_.reset();
  return false;
}

}  // namespace transept
