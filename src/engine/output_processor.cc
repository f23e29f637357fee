#include "engine/output_processor.h"

#include <algorithm>

#include "base/check.h"
#include "sampling/stop_checker.h"

namespace transept {
namespace {

PositionLogprobs position_logprobs(const RowSample& sample, const StepOutput& output) {
  const auto begin = output.samples.top.begin() + sample.top_begin;
  PositionLogprobs entries(begin, begin + sample.num_top);
  const bool listed =
      std::any_of(entries.begin(), entries.end(), [&](const TokenLogprob& e) { return e.token_id == sample.token_id; });
  if (!listed) entries.push_back({sample.token_id, sample.logprob, sample.rank});
  return entries;
}

double since(TimePoint from, TimePoint to) { return seconds(to - from); }

}  // namespace

OutputProcessor::OutputProcessor(Scheduler& scheduler, const Tokenizer* tokenizer, const Clock& clock)
    : scheduler_(scheduler), tokenizer_(tokenizer), clock_(clock) {}

void OutputProcessor::add_group(const SequenceGroup& group, EncoderDecoderInputs inputs) {
  auto state = std::make_unique<GroupState>();
  if (group.params().prompt_logprobs.has_value() || group.params().score_only) {
    state->prompt_logprobs.resize(inputs.prompt_token_ids.size());
  }
  state->inputs = std::move(inputs);
  groups_.emplace(group.group_id(), std::move(state));
}

void OutputProcessor::plan_rows(StepPlan& plan) const {
  plan.rows.clear();
  for (size_t i = 0; i < plan.scheduled.groups.size(); ++i) {
    const GroupId id = plan.scheduled.groups[i].group_id;
    const SequenceGroup* group = scheduler_.find(id);
    CHECK(group != nullptr, "a group was planned that the scheduler does not have");
    plan_group(*group, *groups_.at(id), i, plan);
  }
}

void OutputProcessor::plan_group(const SequenceGroup& group, const GroupState& state, size_t group_idx,
                                 StepPlan& plan) const {
  const SequenceGroupMetadata& metadata = plan.scheduled.groups[group_idx];
  const SamplingParams& params = group.params();
  for (size_t i = 0; i < metadata.seq_data.size(); ++i) {
    const SequenceData& data = metadata.seq_data[i];
    const Sequence* seq = group.find(data.seq_id);
    const int32_t num_rows = static_cast<int32_t>(data.token_ids.size());
    const auto push = [&](int32_t row) -> RowPlan& {
      RowPlan& planned = plan.rows.push();
      planned.group_idx = static_cast<int32_t>(group_idx);
      planned.seq_idx = static_cast<int32_t>(i);
      planned.row = row;
      return planned;
    };
    for (int32_t row = data.first_logits_row; row < num_rows; ++row) {
      // Row r predicts the token after it: one of the prompt's is scored, the one past the end is chosen.
      const int32_t target = data.context_len + row + 1;
      if (target < seq->num_prompt_tokens() && !state.prompt_logprobs.empty()) {
        RowPlan& planned = push(row);
        planned.target_token = seq->token_ids()[static_cast<size_t>(target)];
        planned.num_logprobs = params.prompt_logprobs.value_or(0);
        planned.position = static_cast<uint32_t>(target);
      }
    }
    if (!data.sampled || params.score_only) continue;
    // After the prompt the one sequence gives n samples. Those that fork from it come first: it must not have grown
    // yet.
    const bool forks = seq->num_output_tokens() == 0;
    for (int32_t s = 1; forks && s < params.n; ++s) plan_sample(group, state, *seq, s, push(num_rows - 1));
    plan_sample(group, state, *seq, seq->index(), push(num_rows - 1));
  }
}

void OutputProcessor::plan_sample(const SequenceGroup& group, const GroupState& state, const Sequence& seq,
                                  int32_t sample_idx, RowPlan& row) const {
  const SamplingParams& params = group.params();
  row.sample_idx = sample_idx;
  row.temperature = params.temperature;
  row.top_k = params.top_k;
  row.top_p = params.top_p;
  row.min_p = params.min_p;
  row.seed = params.seed;
  row.position = static_cast<uint32_t>(seq.num_output_tokens());
  row.num_logprobs = params.logprobs.value_or(-1);
  build_row_edits(params, {state.inputs.encoder_prompt_token_ids, seq.prompt_token_ids(), seq.output_token_ids()},
                  row.edits);
}

void OutputProcessor::process(const StepPlan& plan, const StepOutput& output, std::vector<RequestOutput>& finished) {
  const TimePoint now = clock_.now();
  for (const SequenceGroupMetadata& metadata : plan.scheduled.groups) {
    GroupState& state = *groups_.at(metadata.group_id);
    if (metadata.encoder_seq_data.encode_now && state.encode_s < 0) state.encode_s = output.encode_seconds;
  }
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const RowPlan& row = plan.rows[i];
    const SequenceGroupMetadata& metadata = plan.scheduled.groups[static_cast<size_t>(row.group_idx)];
    SequenceGroup& group = *scheduler_.find(metadata.group_id);
    GroupState& state = *groups_.at(metadata.group_id);
    if (!state.has_first_token && row.target_token < 0) {
      state.has_first_token = true;
      state.first_token = now;
    }
    process_row(row, output.samples.rows[i], output, group, metadata.seq_data[static_cast<size_t>(row.seq_idx)], state);
  }
  for (const SequenceGroupMetadata& metadata : plan.scheduled.groups) {
    SequenceGroup& group = *scheduler_.find(metadata.group_id);
    GroupState& state = *groups_.at(metadata.group_id);
    if (group.params().score_only && metadata.seq_data.size() == 1 && metadata.seq_data[0].sampled) {
      scheduler_.finish_sequence(group, metadata.seq_data[0].seq_id, FinishReason::kLength);
    }
    if (!group.is_finished()) continue;
    finished.push_back(make_output(group, state));
    groups_.erase(metadata.group_id);
  }
}

void OutputProcessor::process_row(const RowPlan& row, const RowSample& sample, const StepOutput& output,
                                  SequenceGroup& group, const SequenceData& data, GroupState& state) {
  if (row.target_token >= 0) {
    state.prompt_logprobs[row.position] = position_logprobs(sample, output);
    state.score += sample.logprob;
    return;
  }
  Sequence* parent = group.find(data.seq_id);
  Sequence& seq = row.sample_idx == parent->index() ? *parent : scheduler_.fork_sequence(group, parent->id());
  append_token(group, seq, sample, output, state);
}

void OutputProcessor::append_token(SequenceGroup& group, Sequence& seq, const RowSample& sample,
                                   const StepOutput& output, GroupState& state) {
  const SamplingParams& params = group.params();
  auto found = state.sequences.find(seq.id());
  if (found == state.sequences.end()) found = state.sequences.emplace(seq.id(), make_state(group, state)).first;
  SequenceState& sequence = found->second;
  if (sample.token_id < 0) {  // the scores were not numbers: a broken checkpoint must not loop on
    const bool forbidden = sample.token_id == kNothingLeft;
    state.error =
        forbidden ? "bans and suppressions leave no token to choose" : "the model gave scores that are not numbers";
    if (forbidden) state.error_param = "suppress_tokens";
    finish(group, seq, FinishReason::kAbort, sequence);
    return;
  }
  seq.append_token(sample.token_id, sample.logprob);
  if (params.logprobs.has_value()) sequence.logprobs.push_back(position_logprobs(sample, output));
  const int32_t num_generated = seq.num_output_tokens();
  StopDecision decision = check_stop_token(params, sample.token_id, num_generated);
  if (sequence.detokenizer != nullptr && !decision.hides_token) {
    sequence.detokenizer->append(sample.token_id);
    if (decision.reason != FinishReason::kNone) sequence.detokenizer->finish();
    const std::string& text = sequence.detokenizer->text();
    if (!params.stop.empty()) {
      StopDecision by_string = check_stop_string(params, text, sequence.num_checked, num_generated);
      if (by_string.reason != FinishReason::kNone) decision = std::move(by_string);
    }
    sequence.num_checked = text.size();
  }
  if (decision.reason == FinishReason::kNone) return;
  sequence.stop_reason = decision.stop_reason;
  sequence.text_length = decision.text_length;
  finish(group, seq, decision.reason, sequence);
}

void OutputProcessor::finish(SequenceGroup& group, Sequence& seq, FinishReason reason, SequenceState& state) {
  if (state.detokenizer != nullptr) state.detokenizer->finish();
  scheduler_.finish_sequence(group, seq.id(), reason);
}

OutputProcessor::SequenceState OutputProcessor::make_state(const SequenceGroup& group, const GroupState& state) const {
  SequenceState sequence;
  if (tokenizer_ != nullptr) {
    sequence.detokenizer = std::make_unique<IncrementalDetokenizer>(*tokenizer_, state.inputs.prompt_token_ids,
                                                                    group.params().skip_special_tokens);
  }
  if (group.params().logprobs.has_value()) sequence.logprobs.reserve(static_cast<size_t>(group.params().max_tokens));
  return sequence;
}

RequestOutput OutputProcessor::make_output(const SequenceGroup& group, GroupState& state) const {
  RequestOutput result;
  result.request_id = group.request_id();
  result.encoder_prompt = std::move(state.inputs.encoder_prompt);
  result.encoder_prompt_token_ids = std::move(state.inputs.encoder_prompt_token_ids);
  result.prompt = std::move(state.inputs.prompt);
  result.prompt_token_ids = std::move(state.inputs.prompt_token_ids);
  if (!state.prompt_logprobs.empty()) result.prompt_logprobs = std::move(state.prompt_logprobs);
  if (group.params().score_only) result.score = state.score;
  for (const std::unique_ptr<Sequence>& seq : group.seqs()) {
    if (group.params().score_only) break;
    CompletionOutput output;
    output.index = seq->index();
    output.token_ids.assign(seq->output_token_ids().begin(), seq->output_token_ids().end());
    output.cumulative_logprob = seq->cumulative_logprob();
    output.finish_reason = seq->finish_reason();
    const auto found = state.sequences.find(seq->id());
    if (found != state.sequences.end()) {
      SequenceState& sequence = found->second;
      if (sequence.detokenizer != nullptr)
        output.text = sequence.detokenizer->text().substr(0, sequence.text_length.value_or(std::string::npos));
      if (group.params().logprobs.has_value()) output.logprobs = std::move(sequence.logprobs);
      output.stop_reason = std::move(sequence.stop_reason);
    }
    result.outputs.push_back(std::move(output));
  }
  std::sort(result.outputs.begin(), result.outputs.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  const TimePoint now = clock_.now();
  if (group.was_scheduled()) result.metrics.queue_s = since(group.arrival_time(), group.first_scheduled_time());
  result.metrics.encode_s = state.encode_s;
  if (state.has_first_token) result.metrics.first_token_s = since(group.arrival_time(), state.first_token);
  result.metrics.total_s = since(group.arrival_time(), now);
  result.error = std::move(state.error);
  result.error_param = std::move(state.error_param);
  result.finished = true;
  return result;
}

bool OutputProcessor::abort(GroupId group_id, RequestOutput& output) {
  const auto found = groups_.find(group_id);
  SequenceGroup* group = scheduler_.find(group_id);
  if (found == groups_.end() || group == nullptr) return false;
  for (const std::unique_ptr<Sequence>& seq : group->seqs()) {
    if (!seq->is_finished()) seq->finish(FinishReason::kAbort);
  }
  output = make_output(*group, *found->second);
  groups_.erase(found);
  scheduler_.abort_seq_group(group_id);
  return true;
}

}  // namespace transept
