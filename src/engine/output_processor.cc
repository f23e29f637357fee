#include "engine/output_processor.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "sampling/build_row_edits.h"
#include "speculation/accept.h"

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

// The n best of the sampled answers, as OpenAI's best_of has it: by log-probability per token.
void keep_best(size_t n, std::vector<CompletionOutput>& outputs) {
  const auto mean = [](const CompletionOutput& output) {
    return output.cumulative_logprob / static_cast<double>(std::max<size_t>(output.token_ids.size(), 1));
  };
  std::stable_sort(outputs.begin(), outputs.end(), [&](const auto& a, const auto& b) { return mean(a) > mean(b); });
  outputs.resize(std::min(n, outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].index = static_cast<int32_t>(i);
}

RowPlan& push_row(size_t group_idx, size_t seq_idx, int32_t row, StepPlan& plan) {
  RowPlan& planned = plan.rows.push();
  planned.group_idx = static_cast<int32_t>(group_idx);
  planned.seq_idx = static_cast<int32_t>(seq_idx);
  planned.row = row;
  return planned;
}

double since(TimePoint from, TimePoint to) { return seconds(to - from); }

// A request without an encoder input has nothing to align with: its indices stay -1, whatever it shares a step with.
bool aligns(const EncoderDecoderInputs& inputs, const SamplingParams& params) {
  return params.return_alignments && num_cross_positions(inputs.items) > 0;
}

}  // namespace

OutputProcessor::OutputProcessor(Scheduler& scheduler, const Tokenizer* tokenizer, const Clock& clock,
                                 int32_t vocab_size)
    : scheduler_(scheduler), tokenizer_(tokenizer), clock_(clock), vocab_size_(vocab_size) {}

void OutputProcessor::add_group(const SequenceGroup& group, EncoderDecoderInputs inputs, bool stream,
                                const RequestMetrics& before) {
  auto state = std::make_unique<GroupState>();
  state->queue_s = before.queue_s;
  state->encode_s = before.encode_s;
  if (before.num_cached_tokens >= 0) {
    state->num_cached_tokens = before.num_cached_tokens;
    state->num_cached_media = before.num_cached_media;
  }
  if (group.params().prompt_logprobs.has_value() || group.params().score_only) {
    state->prompt_logprobs.resize(inputs.prompt_token_ids.size());
    if (group.params().return_alignments) state->prompt_alignments.resize(inputs.prompt_token_ids.size(), -1);
  }
  state->inputs = std::move(inputs);
  if (group.params().num_beams > 1) state->beams = std::make_unique<BeamGroup>(group, state->inputs, tokenizer_);
  const SamplingParams& params = group.params();
  const bool is_settled_as_it_comes = state->beams == nullptr && params.num_seqs() <= params.n && !params.score_only;
  if (stream && is_settled_as_it_comes) state->stream = std::make_unique<StopPrefixes>(params.stop);
  groups_.emplace(group.group_id(), std::move(state));
}

void OutputProcessor::plan_rows(StepPlan& plan) {
  plan.rows.clear();
  plan.captures.clear();
  plan_encoder_captures(plan);
  for (size_t i = 0; i < plan.scheduled.groups.size(); ++i) {
    const GroupId id = plan.scheduled.groups[i].group_id;
    const SequenceGroup* group = scheduler_.find(id);
    CHECK(group != nullptr, "a group was planned that the scheduler does not have");
    plan_group(*group, *groups_.at(id), i, plan);
  }
}

void OutputProcessor::plan_encoder_captures(StepPlan& plan) const {
  plan.encoder_captures.clear();
  const auto add = [&](GroupId id) {
    const bool is_listed = !plan.encoder_captures.empty() && plan.encoder_captures.back() == id;
    if (scheduler_.find(id)->params().capture_encoder_output && !is_listed) plan.encoder_captures.push_back(id);
  };
  for (const PlannedEncode& encode : plan.scheduled.encodes) add(encode.group_id);
  if (plan.scheduled.long_encode.runs) add(plan.scheduled.long_encode.encode.group_id);
}

void OutputProcessor::plan_group(const SequenceGroup& group, const GroupState& state, size_t group_idx,
                                 StepPlan& plan) {
  const SequenceGroupMetadata& metadata = plan.scheduled.groups[group_idx];
  const SamplingParams& params = group.params();
  for (size_t i = 0; i < metadata.seq_data.size(); ++i) {
    const SequenceData& data = metadata.seq_data[i];
    const Sequence* seq = group.find(data.seq_id);
    const int32_t num_rows = static_cast<int32_t>(data.token_ids.size());
    plan_prompt(group, state, group_idx, i, plan);
    plan_capture(group, state, group_idx, i, plan);
    if (!data.sampled || params.score_only) continue;
    if (data.num_drafts > 0) {
      plan_drafted(group, state, group_idx, i, plan);
      continue;
    }
    // After the prompt the one sequence gives n samples. Those that fork from it come first: it must not have grown
    // yet.
    const bool forks = seq->num_output_tokens() == 0 && state.beams == nullptr;
    const auto push = [&]() -> RowPlan& { return push_row(group_idx, i, num_rows - 1, plan); };
    const std::span<const int32_t> generated = seq->output_token_ids();
    for (int32_t s = 1; forks && s < params.num_seqs(); ++s) plan_sample(group, state, *seq, generated, s, push());
    plan_sample(group, state, *seq, generated, seq->index(), push());
  }
}

// The row of the last token, and one of each draft: each is what it would be in a step of its own.
void OutputProcessor::plan_drafted(const SequenceGroup& group, const GroupState& state, size_t group_idx,
                                   size_t seq_idx, StepPlan& plan) {
  const SequenceData& data = plan.scheduled.groups[group_idx].seq_data[seq_idx];
  const Sequence& seq = *group.find(data.seq_id);
  const std::span<const int32_t> output = seq.output_token_ids(), rows = data.token_ids;
  const std::span<const int32_t> drafts = rows.last(static_cast<size_t>(data.num_drafts));
  drafted_.assign(output.begin(), output.end());
  drafted_.insert(drafted_.end(), drafts.begin(), drafts.end());
  const auto first_row = static_cast<int32_t>(rows.size() - drafts.size()) - 1;
  for (int32_t i = 0; i <= data.num_drafts; ++i) {
    const std::span<const int32_t> generated = std::span(drafted_).first(output.size() + static_cast<size_t>(i));
    plan_sample(group, state, seq, generated, seq.index(), push_row(group_idx, seq_idx, first_row + i, plan));
  }
}

// Row r predicts the token after it: one of the prompt's is scored, the one past the end is chosen.
void OutputProcessor::plan_prompt(const SequenceGroup& group, const GroupState& state, size_t group_idx, size_t seq_idx,
                                  StepPlan& plan) const {
  const SequenceData& data = plan.scheduled.groups[group_idx].seq_data[seq_idx];
  const SamplingParams& params = group.params();
  const Sequence& seq = *group.find(data.seq_id);
  const int32_t num_rows = static_cast<int32_t>(data.token_ids.size());
  const bool wants_probe = params.probe.has_value() && !state.probe_logprob.has_value() && seq.index() == 0;
  for (int32_t row = 0; row < num_rows; ++row) {
    const int32_t target = data.context_len + row + 1;
    if (row >= data.first_logits_row && target < seq.num_prompt_tokens() && !state.prompt_logprobs.empty()) {
      RowPlan& planned = push_row(group_idx, seq_idx, row, plan);
      planned.target_token = seq.token_ids()[static_cast<size_t>(target)];
      planned.target_vocab = params.prompt_logprobs_vocab;
      planned.num_logprobs = params.prompt_logprobs.value_or(0);
      planned.position = static_cast<uint32_t>(target);
      planned.align = aligns(state.inputs, params);
    }
    if (wants_probe && data.context_len + row == params.probe->prompt_index) {
      RowPlan& planned = push_row(group_idx, seq_idx, row, plan);
      planned.target_token = params.probe->token_id;
      planned.num_logprobs = -1;
      planned.probe = true;
    }
  }
}

// What of the prompt passes through this step, and did not in an earlier one (before a recompute).
void OutputProcessor::plan_capture(const SequenceGroup& group, const GroupState& state, size_t group_idx,
                                   size_t seq_idx, StepPlan& plan) const {
  if (!group.params().capture_cross_attention) return;
  const SequenceData& data = plan.scheduled.groups[group_idx].seq_data[seq_idx];
  const Sequence& seq = *group.find(data.seq_id);
  const int32_t num_rows = static_cast<int32_t>(data.token_ids.size());
  const int32_t begin = std::max(state.num_captured_rows - data.context_len, 0);
  const int32_t end = std::min(seq.num_prompt_tokens() - data.context_len, num_rows);
  if (seq.index() != 0 || begin >= end) return;
  plan.captures.push_back({static_cast<int32_t>(group_idx), static_cast<int32_t>(seq_idx), begin, end});
}

void OutputProcessor::plan_sample(const SequenceGroup& group, const GroupState& state, const Sequence& seq,
                                  std::span<const int32_t> generated, int32_t sample_idx, RowPlan& row) const {
  const SamplingParams& params = group.params();
  row.sample_idx = sample_idx;
  row.temperature = params.temperature;
  row.top_k = params.top_k;
  row.top_p = params.top_p;
  row.min_p = params.min_p;
  row.seed = params.seed;
  row.position = static_cast<uint32_t>(generated.size());
  row.num_logprobs = params.logprobs.value_or(-1);
  // Samples beyond n are ranked by their sums.
  row.wants_logprob = !params.skip_cumulative_logprob || params.logprobs.has_value() || params.num_seqs() > params.n;
  row.align = aligns(state.inputs, params);
  row.num_candidates = state.beams == nullptr ? 0 : state.beams->num_candidates();
  build_row_edits(params, {state.inputs.encoder_token_ids(), seq.prompt_token_ids(), generated, vocab_size_},
                  row.edits);
}

// Null: it was aborted.
OutputProcessor::GroupState* OutputProcessor::find(GroupId group_id) const {
  const auto found = groups_.find(group_id);
  return found == groups_.end() ? nullptr : found->second.get();
}

void OutputProcessor::process(const StepPlan& plan, const StepOutput& output, std::vector<RequestOutput>& outputs) {
  for (const PlannedEncode& encode : plan.scheduled.encodes) {
    GroupState* state = find(encode.group_id);
    if (state != nullptr && state->encode_s < 0) state->encode_s = output.encode_seconds;
  }
  if (const LongEncode& encode = plan.scheduled.long_encode; encode.runs) {
    GroupState& state = *groups_.at(encode.encode.group_id);
    state.sliced_encode_s = (encode.begins ? 0 : state.sliced_encode_s) + output.encode_seconds;
    if (output.long_encode_ended && state.encode_s < 0) state.encode_s = state.sliced_encode_s;
  }
  process_rows(plan, output);
  for (size_t i = 0; i < plan.captures.size(); ++i) {
    const SequenceGroupMetadata& metadata = plan.scheduled.groups[static_cast<size_t>(plan.captures[i].group_idx)];
    if (GroupState* state = find(metadata.group_id)) {
      add_captured(plan.captures[i], output.captured[i], metadata, *state);
    }
  }
  for (const CapturedEncode& encode : output.captured_encodes) {
    GroupState* state = find(encode.group_id);
    if (state == nullptr || !scheduler_.find(encode.group_id)->params().capture_encoder_output)
      continue;  // others' ask
    state->encoder_output.insert(state->encoder_output.end(), encode.values.begin(), encode.values.end());
  }
  for (const SequenceGroupMetadata& metadata : plan.scheduled.groups) {
    if (GroupState* state = find(metadata.group_id)) end_group(metadata, output, *state, outputs);
  }
}

void OutputProcessor::process_rows(const StepPlan& plan, const StepOutput& output) {
  const TimePoint now = clock_.now();
  draft_outcomes_.clear();
  num_skipped_samples_ = 0;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const RowPlan& row = plan.rows[i];
    const SequenceGroupMetadata& metadata = plan.scheduled.groups[static_cast<size_t>(row.group_idx)];
    GroupState* state = find(metadata.group_id);
    if (state == nullptr) {
      num_skipped_samples_ += row.target_token < 0 ? 1 : 0;
      continue;
    }
    if (!state->has_first_token && row.target_token < 0) {
      state->has_first_token = true;
      state->first_token = now;
    }
    const SequenceData& data = metadata.seq_data[static_cast<size_t>(row.seq_idx)];
    if (data.num_drafts == 0) {
      process_row(row, output.samples.rows[i], output, *scheduler_.find(metadata.group_id), data, *state);
      continue;
    }
    const auto num_drafts = static_cast<size_t>(data.num_drafts);
    process_drafted(metadata, data, std::span(output.samples.rows).subspan(i, num_drafts + 1), output, *state);
    i += num_drafts;
  }
}

// What the step's rows have made of the group: a result, or a piece of a streamed one. Forgets it if it has finished.
void OutputProcessor::end_group(const SequenceGroupMetadata& metadata, const StepOutput& output, GroupState& state,
                                std::vector<RequestOutput>& outputs) {
  SequenceGroup& group = *scheduler_.find(metadata.group_id);
  if (!state.beam_rows.empty()) advance_beams(output, group, state);
  if (group.params().score_only && metadata.seq_data.size() == 1 && metadata.seq_data[0].sampled) {
    scheduler_.finish_sequence(group, metadata.seq_data[0].seq_id, FinishReason::kLength);
  }
  if (group.is_finished()) {
    outputs.push_back(make_output(group, state));
    groups_.erase(metadata.group_id);
  } else if (state.stream != nullptr) {
    RequestOutput piece;
    piece.outputs = sampled_outputs(group, state);
    if (piece.outputs.empty()) return;
    piece.request_id = group.request_id();
    outputs.push_back(std::move(piece));
  }
}

void OutputProcessor::process_row(const RowPlan& row, const RowSample& sample, const StepOutput& output,
                                  SequenceGroup& group, const SequenceData& data, GroupState& state) {
  if (row.probe) {
    state.probe_logprob = sample.token_id < 0 ? std::numeric_limits<float>::quiet_NaN() : sample.logprob;
    return;
  }
  if (row.target_token >= 0) {
    state.prompt_logprobs[row.position] = position_logprobs(sample, output);
    state.score += sample.logprob;
    if (!state.prompt_alignments.empty()) state.prompt_alignments[row.position] = sample.source_index;
    return;
  }
  if (state.beams != nullptr) {
    state.beam_rows.push_back({data.seq_id, &sample});
    return;
  }
  Sequence* parent = group.find(data.seq_id);
  Sequence& seq = row.sample_idx == parent->index() ? *parent : scheduler_.fork_sequence(group, parent->id());
  append_token(group, seq, sample, output, state);
}

// Token by token, as in steps of their own: what lies behind an end is dropped.
void OutputProcessor::process_drafted(const SequenceGroupMetadata& metadata, const SequenceData& data,
                                      std::span<const RowSample> samples, const StepOutput& output, GroupState& state) {
  SequenceGroup& group = *scheduler_.find(metadata.group_id);
  Sequence& seq = *group.find(data.seq_id);
  const int32_t num_right = num_accepted(std::span(data.token_ids).last(static_cast<size_t>(data.num_drafts)), samples);
  int32_t num_tokens = 0;
  while (num_tokens <= num_right && !seq.is_finished()) {
    append_token(group, seq, samples[static_cast<size_t>(num_tokens)], output, state);
    ++num_tokens;
  }
  scheduler_.settle_drafts(seq, num_tokens - 1);
  const DraftOutcome outcome{metadata.group_id, seq.index(), data.num_drafts, std::min(num_right, num_tokens),
                             num_tokens};
  draft_outcomes_.push_back(outcome);
  state.num_accepted_drafts += outcome.num_accepted;
  state.num_rejected_drafts += outcome.num_drafts - outcome.num_accepted;
}

// A prompt's rows come in order, in as many steps as it takes.
void OutputProcessor::add_captured(const CapturePlan& capture, const CapturedRows& rows,
                                   const SequenceGroupMetadata& metadata, GroupState& state) {
  const size_t num_rows = static_cast<size_t>(capture.row_end - capture.row_begin);
  const size_t num_tokens = state.inputs.prompt_token_ids.size();
  const size_t width = static_cast<size_t>(metadata.num_cross_tokens);
  const size_t num_heads = static_cast<size_t>(rows.num_heads);
  if (state.cross_attention == nullptr) {
    state.cross_attention = std::make_shared<CrossAttentionWeights>();
    state.cross_attention->num_heads = rows.num_heads;
    state.cross_attention->num_tokens = static_cast<int32_t>(num_tokens);
    state.cross_attention->num_positions = metadata.num_cross_tokens;
    state.cross_attention->values.resize(num_heads * num_tokens * width);
  }
  CHECK(rows.values.size() == num_heads * num_rows * width);
  const size_t first = static_cast<size_t>(state.num_captured_rows);
  for (size_t head = 0; head < num_heads; ++head) {
    std::copy_n(rows.values.data() + head * num_rows * width, num_rows * width,
                state.cross_attention->values.data() + (head * num_tokens + first) * width);
  }
  state.num_captured_rows += static_cast<int32_t>(num_rows);
}

// The scores were not numbers, or nothing is left to choose: a broken checkpoint must not loop on.
bool OutputProcessor::fail_without_token(const RowSample& sample, GroupState& state) const {
  if (sample.token_id >= 0) return false;
  const bool forbidden = sample.token_id == kNothingLeft;
  state.error = forbidden ? "bans, suppressions and what a shortlist leaves out leave no token to choose"
                          : "the model gave scores that are not numbers";
  if (forbidden) state.error_param = "suppress_tokens";
  return true;
}

void OutputProcessor::advance_beams(const StepOutput& output, SequenceGroup& group, GroupState& state) {
  // Beams may come to a dead end, all of them too if something has ended before; without any hypothesis, or with scores
  // that are not numbers, it is an error.
  const auto is_alive = [](const BeamGroup::Row& row) { return row.sample->token_id >= 0; };
  const auto has_no_numbers = [](const BeamGroup::Row& row) { return row.sample->token_id == kNotNumbers; };
  const std::vector<BeamGroup::Row>& rows = state.beam_rows;
  auto failed = std::find_if(rows.begin(), rows.end(), has_no_numbers);
  if (failed == rows.end() && !state.beams->has_hypothesis() && std::none_of(rows.begin(), rows.end(), is_alive))
    failed = rows.begin();
  if (failed != rows.end()) {
    fail_without_token(*failed->sample, state);
    for (const BeamGroup::Row& row : rows) scheduler_.finish_sequence(group, row.seq_id, FinishReason::kAbort);
  } else {
    state.beams->advance(rows, output.samples, scheduler_, group);
  }
  state.beam_rows.clear();
}

void OutputProcessor::append_token(SequenceGroup& group, Sequence& seq, const RowSample& sample,
                                   const StepOutput& output, GroupState& state) {
  const SamplingParams& params = group.params();
  auto found = state.sequences.find(seq.id());
  if (found == state.sequences.end()) found = state.sequences.emplace(seq.id(), make_state(group, state)).first;
  SequenceState& sequence = found->second;
  if (fail_without_token(sample, state)) {
    finish(group, seq, FinishReason::kAbort, sequence);
    return;
  }
  seq.append_token(sample.token_id, sample.logprob);
  if (params.logprobs.has_value()) sequence.logprobs.push_back(position_logprobs(sample, output));
  if (params.return_alignments) sequence.alignments.push_back(sample.source_index);
  const FinishReason reason = sequence.text.append(params, sample.token_id, seq.num_output_tokens());
  if (reason != FinishReason::kNone) finish(group, seq, reason, sequence);
}

void OutputProcessor::finish(SequenceGroup& group, Sequence& seq, FinishReason reason, SequenceState& state) {
  state.text.finish();
  scheduler_.finish_sequence(group, seq.id(), reason);
}

OutputProcessor::SequenceState OutputProcessor::make_state(const SequenceGroup& group, const GroupState& state) const {
  SequenceState sequence{OutputText(tokenizer_, state.inputs.prompt_token_ids, group.params()), {}, {}, {}};
  if (group.params().logprobs.has_value()) sequence.logprobs.reserve(static_cast<size_t>(group.params().max_tokens));
  return sequence;
}

RequestOutput OutputProcessor::make_output(const SequenceGroup& group, GroupState& state) const {
  RequestOutput result;
  if (!group.params().score_only) {  // before the prompts move on: beams read them
    result.outputs = state.beams != nullptr ? state.beams->make_outputs(group) : sampled_outputs(group, state);
  }
  result.request_id = group.request_id();
  result.encoder_prompt = std::move(state.inputs.encoder_prompt);
  for (EncoderItem& item : state.inputs.items) {
    std::vector<int32_t>& ids = result.encoder_prompt_token_ids;
    if (ids.empty()) {
      ids = std::move(item.token_ids);
    } else {
      ids.insert(ids.end(), item.token_ids.begin(), item.token_ids.end());
    }
    const EncoderFeatures* media = media_of(item);
    if (media == nullptr) continue;
    result.audio_seconds += media->audio_seconds;
    if (media->image.width > 0) result.images.push_back({media->image, media->num_positions});
  }
  result.prompt = std::move(state.inputs.prompt);
  result.prompt_token_ids = std::move(state.inputs.prompt_token_ids);
  if (!state.prompt_logprobs.empty()) result.prompt_logprobs = std::move(state.prompt_logprobs);
  if (group.params().score_only) result.score = state.score;
  if (!state.prompt_alignments.empty()) result.prompt_alignments = std::move(state.prompt_alignments);
  result.probe_logprob = state.probe_logprob;
  if (state.cross_attention != nullptr && state.num_captured_rows == state.cross_attention->num_tokens) {
    result.cross_attention = std::move(state.cross_attention);
  }
  result.encoder_output = std::move(state.encoder_output);
  const TimePoint now = clock_.now();
  result.metrics.queue_s = state.queue_s;
  if (state.queue_s < 0 && group.was_scheduled()) {
    result.metrics.queue_s = since(group.arrival_time(), group.first_scheduled_time());
  }
  result.metrics.encode_s = state.encode_s;
  if (group.was_scheduled()) {
    const bool is_told = state.num_cached_tokens.has_value();
    result.metrics.num_cached_tokens = state.num_cached_tokens.value_or(group.num_cached_tokens());
    result.metrics.num_cached_media = is_told ? state.num_cached_media : group.num_cached_media();
  }
  if (state.has_first_token) result.metrics.first_token_s = since(group.arrival_time(), state.first_token);
  result.metrics.total_s = since(group.arrival_time(), now);
  result.error = std::move(state.error);
  result.error_param = std::move(state.error_param);
  result.num_accepted_drafts = state.num_accepted_drafts;
  result.num_rejected_drafts = state.num_rejected_drafts;
  result.finished = true;
  return result;
}

std::vector<CompletionOutput> OutputProcessor::sampled_outputs(const SequenceGroup& group, GroupState& state) const {
  std::vector<CompletionOutput> outputs;
  for (const std::unique_ptr<Sequence>& seq : group.seqs()) {
    if (state.stream == nullptr || has_news(*seq, state)) outputs.push_back(unsent(group, *seq, state));
  }
  std::sort(outputs.begin(), outputs.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  const size_t n = static_cast<size_t>(std::max(group.params().n, 1));
  if (outputs.size() > n) keep_best(n, outputs);
  return outputs;
}

bool OutputProcessor::has_news(const Sequence& seq, const GroupState& state) {
  const auto found = state.sequences.find(seq.id());
  if (found == state.sequences.end()) return seq.is_finished();
  return found->second.sent.has_news(static_cast<size_t>(seq.num_output_tokens()), seq.is_finished());
}

// All of the sequence that was not sent: all of it, where nothing is streamed.
CompletionOutput OutputProcessor::unsent(const SequenceGroup& group, const Sequence& seq, GroupState& state) const {
  CompletionOutput output;
  output.index = seq.index();
  output.cumulative_logprob = seq.cumulative_logprob();
  output.finish_reason = seq.finish_reason();
  const auto found = state.sequences.find(seq.id());
  if (found == state.sequences.end()) return output;  // it has not had a token
  SequenceState& sequence = found->second;
  const std::span<const int32_t> ids = sequence.sent.take_ids(seq.output_token_ids());
  output.token_ids.assign(ids.begin(), ids.end());
  const std::string_view text = sequence.text.text();
  output.text = state.stream == nullptr ? text : sequence.sent.take_text(text, seq.is_finished(), *state.stream);
  output.stop_reason = sequence.text.stop_reason();
  if (group.params().logprobs.has_value()) output.logprobs = std::exchange(sequence.logprobs, {});
  if (group.params().return_alignments) output.alignments = std::exchange(sequence.alignments, {});
  return output;
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
