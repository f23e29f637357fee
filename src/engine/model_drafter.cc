#include "engine/model_drafter.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "sampling/build_row_edits.h"
#include "sampling/stop_checker.h"
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

// ---- Drafts

void ModelDrafter::propose(Recycled<Ask>& asks) {
  if (is_broken_) return;
  begin_runs(asks);
  seconds_ = 0;
  while (plan_round()) {
    if (!execute()) return;
    seconds_ += output_.decode_seconds;
    take_round();
  }
  for (const Run& run : runs_) {
    run.state->num_known = std::min(static_cast<int32_t>(run.state->fed.size()), run.ask->seq->num_tokens());
  }
}

void ModelDrafter::begin_runs(Recycled<Ask>& asks) {
  runs_.clear();
  // Those that have a place keep it.
  for (const Ask& ask : asks) {
    const auto found = states_.find(ask.seq->id());
    if (found != states_.end()) found->second->last_step = num_engine_steps_;
  }
  for (Ask& ask : asks) {
    const int32_t most = std::min(ask.max_tokens, info().max_decoder_len - ask.seq->num_tokens() + 1);
    if (most <= 0) continue;
    State* const state = state_of(*ask.group, *ask.seq, nullptr);
    if (is_broken_) return runs_.clear();
    if (state == nullptr) continue;
    follow(*state, ask.seq->token_ids());
    runs_.push_back({&ask, state, most});
  }
}

// False: all drafts are complete.
bool ModelDrafter::plan_round() {
  plan_.scheduled.clear();
  plan_.rows.clear();
  for (Run& run : runs_) plan_run(run);
  return !plan_.scheduled.groups.empty();
}

void ModelDrafter::plan_run(Run& run) {
  run.num_rows = 0;
  run.row = -1;
  SchedulerOutputs& scheduled = plan_.scheduled;
  const Ask& ask = *run.ask;
  if (std::ssize(ask.draft) >= run.most || scheduled.num_seqs == info().max_num_seqs) return;
  const std::span<const int32_t> tokens = ask.seq->token_ids();
  const auto begin = static_cast<int32_t>(run.state->fed.size());
  const auto num_missing = static_cast<int32_t>(tokens.size() + ask.draft.size()) - begin;
  const int32_t count = std::min(num_missing, info().max_num_batched_tokens - scheduled.num_decoder_tokens);
  if (count == 0) return;
  if (!grow(*run.state, begin + count)) {
    run.most = 0;
    return;
  }
  SequenceGroupMetadata& metadata = scheduled.groups.push();
  metadata.group_id = run.state->group_id;
  metadata.is_prompt = begin == 0;
  metadata.num_cross_tokens = ask.group->num_cross_tokens();
  SequenceData& data = metadata.seq_data.push();
  data.seq_id = run.state->seq_id;
  data.index = 0;
  data.context_len = begin;
  for (int32_t i = begin; i < begin + count; ++i) {
    const auto place = static_cast<size_t>(i);
    data.token_ids.push_back(place < tokens.size() ? tokens[place] : ask.draft[place - tokens.size()]);
  }
  data.sampled = count == num_missing;
  data.first_logits_row = data.sampled ? count - 1 : count;
  const auto copy = [](std::span<const BlockId> from, BlockTable& to) { to.assign(from.begin(), from.end()); };
  for (size_t i = 0; i < blocks_.specs_of(TableOwner::kSequence).size(); ++i) {
    copy(blocks_.get_block_table(data.seq_id, i), metadata.sequence_tables.push());
  }
  for (size_t i = 0; metadata.num_cross_tokens > 0 && i < blocks_.specs_of(TableOwner::kGroup).size(); ++i) {
    copy(blocks_.get_shared_table(metadata.group_id, i), metadata.group_tables.push());
  }
  run.num_rows = count;
  ++scheduled.num_seqs;
  scheduled.num_decoder_tokens += count;
  if (data.sampled) {
    run.row = static_cast<int32_t>(plan_.rows.size());
    plan_row(run, count - 1);
  }
}

// The best token that the request's own edits leave. Their random number is the target's alone.
void ModelDrafter::plan_row(const Run& run, int32_t row_idx) {
  const Ask& ask = *run.ask;
  RowPlan& row = plan_.rows.push();
  row.group_idx = static_cast<int32_t>(plan_.scheduled.groups.size()) - 1;
  row.seq_idx = 0;
  row.row = row_idx;
  row.temperature = 0;
  row.top_k = 0;
  row.top_p = 1;
  row.min_p = 0;
  row.num_logprobs = -1;
  row.wants_logprob = false;
  const std::span<const int32_t> output = ask.seq->output_token_ids();
  generated_.assign(output.begin(), output.end());
  generated_.insert(generated_.end(), ask.draft.begin(), ask.draft.end());
  row.position = static_cast<uint32_t>(generated_.size());
  RowHistory history;
  if (!ask.group->items().empty()) history.encoder_prompt = ask.group->items().front().token_ids;
  history.prompt = ask.seq->prompt_token_ids();
  history.generated = generated_;
  history.vocab_size = info().spec.vocab_size;
  build_row_edits(ask.group->params(), history, row.edits);
}

void ModelDrafter::take_round() {
  size_t group = 0;
  for (Run& run : runs_) {
    if (run.num_rows == 0) continue;
    const std::vector<int32_t>& fed = plan_.scheduled.groups[group++].seq_data[0].token_ids;
    run.state->fed.insert(run.state->fed.end(), fed.begin(), fed.end());
    num_fed_tokens_ += std::ssize(fed);
    if (run.row < 0) continue;
    const int32_t token = output_.samples.rows[static_cast<size_t>(run.row)].token_id;
    if (token < 0) {
      run.most = 0;
      continue;
    }
    std::vector<int32_t>& draft = run.ask->draft;
    draft.push_back(token);
    const auto num_generated = run.ask->seq->num_output_tokens() + static_cast<int32_t>(draft.size());
    // Nothing follows an end.
    if (check_stop_token(run.ask->group->params(), token, num_generated).reason != FinishReason::kNone) run.most = 0;
  }
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
