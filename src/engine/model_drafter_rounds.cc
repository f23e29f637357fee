// How a step's drafts are made: rounds of the model's own steps, of all sequences together.
#include <algorithm>

#include "engine/model_drafter.h"
#include "sampling/build_row_edits.h"
#include "sampling/stop_checker.h"

namespace transept {

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

}  // namespace transept
