#include "engine/beam_group.h"

#include <algorithm>

#include "base/check.h"

namespace transept {

BeamGroup::Beam BeamGroup::Beam::fork() const {
  return {seq_id, text == nullptr ? nullptr : std::make_unique<OutputText>(*text), logprobs, alignments};
}

BeamGroup::BeamGroup(const SequenceGroup& group, const EncoderDecoderInputs& inputs, const Tokenizer* tokenizer)
    : params_(group.params()),
      inputs_(inputs),
      tokenizer_(tokenizer),
      rule_{params_.num_beams, params_.length_penalty, params_.early_stopping,
            params_.max_tokens + inputs.num_default_generated},
      most_hypotheses_(static_cast<size_t>(params_.patience.has_value()
                                               ? num_patience_hypotheses(params_.num_beams, *params_.patience)
                                               : params_.num_beams)) {
  Beam& first = beams_.emplace_back();
  first.seq_id = group.seqs().front()->id();
  if (!params_.stop.empty()) first.text = std::make_unique<OutputText>(tokenizer, inputs.prompt_token_ids, params_);
}

int32_t BeamGroup::num_candidates() const {
  // Any token may complete a stop string: then as many as Hugging Face looks at.
  const size_t num_ends = (params_.ignore_eos ? 0 : params_.eos_token_ids.size()) + params_.stop_token_ids.size();
  const int32_t by_string = params_.stop.empty() ? 0 : params_.num_beams;
  const int32_t needed = num_beam_candidates(params_.num_beams, static_cast<int32_t>(num_ends) + by_string);
  return std::max(needed, params_.logprobs.value_or(0));
}

void BeamGroup::advance(std::span<const Row> rows, const SampleOutput& samples, Scheduler& scheduler,
                        SequenceGroup& group) {
  order_rows(rows, samples, group);
  const bool is_any_rank = params_.patience.has_value() && !params_.patience_ends_by_rank;
  beam_search(
      params_.num_beams, is_any_rank ? kAnyRank : params_.num_beams, rows_,
      [&](const BeamContinuation& way) { return ends(way, group); }, step_);
  for (const BeamContinuation& way : step_.ended) keep_hypothesis(way, group);
  if (!is_done(group)) {
    fork(scheduler, group);
    grow(group);
    return;
  }
  if (params_.patience.has_value()) keep_unfinished(group);
  for (const Beam& beam : beams_) scheduler.finish_sequence(group, beam.seq_id, FinishReason::kStop);
  beams_.clear();
}

// Rows come in the order of the plan; beams stand best first.
void BeamGroup::order_rows(std::span<const Row> rows, const SampleOutput& samples, const SequenceGroup& group) {
  CHECK(rows.size() == beams_.size(), "a step brought ", rows.size(), " of ", beams_.size(), " beams");
  rows_.clear();
  source_indices_.clear();
  for (const Beam& beam : beams_) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.seq_id == beam.seq_id; });
    CHECK(row != rows.end());
    rows_.push_back(
        {group.find(beam.seq_id)->cumulative_logprob(),
         std::span(samples.top)
             .subspan(static_cast<size_t>(row->sample->top_begin), static_cast<size_t>(row->sample->num_top))});
    source_indices_.push_back(row->sample->source_index);
  }
}

// With patience a beam that reaches max_tokens has not ended: it is an answer only if too few have.
bool BeamGroup::is_end(FinishReason reason, int32_t token_id) const {
  if (reason != FinishReason::kLength || !params_.patience.has_value()) return reason != FinishReason::kNone;
  return !params_.ignore_eos &&
         std::find(params_.eos_token_ids.begin(), params_.eos_token_ids.end(), token_id) != params_.eos_token_ids.end();
}

bool BeamGroup::ends(const BeamContinuation& way, const SequenceGroup& group) const {
  const Beam& beam = beams_[static_cast<size_t>(way.parent)];
  const int32_t num_generated = group.find(beam.seq_id)->num_output_tokens() + 1;
  if (is_end(check_stop_token(params_, way.token_id, num_generated).reason, way.token_id)) return true;
  if (beam.text == nullptr) return false;
  OutputText text = *beam.text;
  return is_end(text.append(params_, way.token_id, num_generated), way.token_id);
}

double BeamGroup::score(const BeamContinuation& way, int32_t num_generated, bool has_ended) const {
  if (!params_.patience.has_value()) {
    return hypothesis_score(way.sum, num_generated + inputs_.num_default_generated, params_.length_penalty);
  }
  const int32_t length = num_generated + params_.num_given_tokens - (has_ended ? 1 : 0);
  return likelihood_score(way.sum, length, params_.patience_length_penalty);
}

// The place of a hypothesis among the kept ones; null: it has none. Hugging Face keeps the best, patience the first.
BeamGroup::Hypothesis* BeamGroup::add_hypothesis(double score, size_t most) {
  const auto worse = std::find_if(hypotheses_.begin(), hypotheses_.end(),
                                  [&](const Hypothesis& other) { return other.score < score; });
  const auto place = worse - hypotheses_.begin();
  if (hypotheses_.size() >= most) {
    if (params_.patience.has_value() || worse == hypotheses_.end()) return nullptr;
    hypotheses_.pop_back();
  }
  Hypothesis& kept = *hypotheses_.emplace(hypotheses_.begin() + place);
  kept.score = score;
  return &kept;
}

void BeamGroup::keep_hypothesis(const BeamContinuation& way, const SequenceGroup& group) {
  const Sequence& seq = *group.find(beams_[static_cast<size_t>(way.parent)].seq_id);
  const double rank_by = score(way, seq.num_output_tokens() + 1, true);
  const bool is_any = params_.patience.has_value() && params_.patience_ends_by_rank;
  Hypothesis* kept = add_hypothesis(rank_by, is_any ? SIZE_MAX : most_hypotheses_);
  if (kept != nullptr) fill_hypothesis(way, group, *kept);
}

// The search with patience is over: where fewer than num_beams have ended, those that still run are answers too. In
// CTranslate2's they are at max_tokens alone, and if they are among the num_beams best of the step.
void BeamGroup::keep_unfinished(const SequenceGroup& group) {
  const size_t num_beams = static_cast<size_t>(params_.num_beams);
  size_t count = step_.running.size(), most = num_beams;
  if (params_.patience_ends_by_rank) {
    const bool is_last = group.find(beams_.front().seq_id)->num_output_tokens() + 1 >= params_.max_tokens;
    count = is_last ? std::min(count, num_beams - std::min(step_.ended.size(), num_beams)) : 0;
    most = SIZE_MAX;
  }
  for (const BeamContinuation& way : std::span(step_.running).first(count)) {
    const Sequence& seq = *group.find(beams_[static_cast<size_t>(way.parent)].seq_id);
    const double rank_by = score(way, seq.num_output_tokens() + 1, false);
    Hypothesis* kept = add_hypothesis(rank_by, most);
    if (kept == nullptr) return;
    fill_hypothesis(way, group, *kept);
  }
}

void BeamGroup::fill_hypothesis(const BeamContinuation& way, const SequenceGroup& group, Hypothesis& kept) const {
  const Beam& beam = beams_[static_cast<size_t>(way.parent)];
  const Sequence& seq = *group.find(beam.seq_id);
  kept.output.token_ids.assign(seq.output_token_ids().begin(), seq.output_token_ids().end());
  kept.output.token_ids.push_back(way.token_id);
  kept.output.cumulative_logprob = way.sum;
  kept.output.beam_score = kept.score;
  if (params_.logprobs.has_value()) {
    kept.output.logprobs = beam.logprobs;
    add_logprobs(way, *kept.output.logprobs);
  }
  if (params_.return_alignments) {
    kept.output.alignments = beam.alignments;
    kept.output.alignments->push_back(source_indices_[static_cast<size_t>(way.parent)]);
  }
}

// The text of an answer, and what ended it. Worked out once, for answers that are returned.
void BeamGroup::write_text(FinishReason if_unfinished, CompletionOutput& output) const {
  OutputText text(tokenizer_, inputs_.prompt_token_ids, params_);
  int32_t count = 0;
  for (const int32_t id : output.token_ids) output.finish_reason = text.append(params_, id, ++count);
  if (output.finish_reason == FinishReason::kNone) {
    output.finish_reason = if_unfinished;
    text.finish();
  }
  output.text = text.text();
  output.stop_reason = text.stop_reason();
}

bool BeamGroup::is_done(const SequenceGroup& group) const {
  if (step_.running.empty()) return true;
  if (params_.patience.has_value()) {
    const int32_t num_generated = group.find(beams_.front().seq_id)->num_output_tokens() + 1;
    return hypotheses_.size() >= most_hypotheses_ || num_generated >= params_.max_tokens;
  }
  const double worst = hypotheses_.empty() ? 0 : hypotheses_.back().score;
  const int32_t length = group.find(beams_.front().seq_id)->num_output_tokens() + 1 + inputs_.num_default_generated;
  return is_beam_search_done(rule_, static_cast<int32_t>(hypotheses_.size()), worst, step_.running.front().sum, length);
}

// Gives every way that goes on a sequence of its own: its parent's, for the last way of each parent; else a fork of it.
// Forks come before anything grows. Beams without a way are dropped.
void BeamGroup::fork(Scheduler& scheduler, SequenceGroup& group) {
  next_beams_.clear();
  for (size_t i = 0; i < step_.running.size(); ++i) {
    const BeamContinuation& way = step_.running[i];
    Beam& parent = beams_[static_cast<size_t>(way.parent)];
    const bool is_last = std::none_of(step_.running.begin() + static_cast<std::ptrdiff_t>(i) + 1, step_.running.end(),
                                      [&](const BeamContinuation& later) { return later.parent == way.parent; });
    if (is_last) {
      next_beams_.push_back(std::move(parent));
    } else {
      next_beams_.push_back(parent.fork());
      next_beams_.back().seq_id = scheduler.fork_sequence(group, parent.seq_id).id();
    }
  }
  for (size_t i = 0; i < beams_.size(); ++i) {
    const bool goes_on = std::any_of(step_.running.begin(), step_.running.end(), [&](const BeamContinuation& way) {
      return way.parent == static_cast<int32_t>(i);
    });
    if (!goes_on) scheduler.remove_sequence(group, beams_[i].seq_id);
  }
}

void BeamGroup::grow(SequenceGroup& group) {
  for (size_t i = 0; i < next_beams_.size(); ++i) {
    const BeamContinuation& way = step_.running[i];
    Beam& beam = next_beams_[i];
    Sequence& seq = *group.find(beam.seq_id);
    const TokenLogprob& token = rows_[static_cast<size_t>(way.parent)].next[static_cast<size_t>(way.entry)];
    seq.append_token(way.token_id, static_cast<double>(token.logprob));
    if (beam.text != nullptr) beam.text->append(params_, way.token_id, seq.num_output_tokens());
    if (params_.logprobs.has_value()) add_logprobs(way, beam.logprobs);
    if (params_.return_alignments) beam.alignments.push_back(source_indices_[static_cast<size_t>(way.parent)]);
  }
  std::swap(beams_, next_beams_);
}

void BeamGroup::add_logprobs(const BeamContinuation& way, std::vector<PositionLogprobs>& logprobs) const {
  const std::span<const TokenLogprob> row = rows_[static_cast<size_t>(way.parent)].next;
  const size_t count = std::min(row.size(), static_cast<size_t>(*params_.logprobs));
  PositionLogprobs entries(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(count));
  if (static_cast<size_t>(way.entry) >= count) entries.push_back(row[static_cast<size_t>(way.entry)]);
  logprobs.push_back(std::move(entries));
}

std::vector<CompletionOutput> BeamGroup::make_outputs(const SequenceGroup& group) const {
  std::vector<CompletionOutput> outputs;
  const size_t wanted = static_cast<size_t>(params_.n);
  for (const Hypothesis& hypothesis : hypotheses_) {
    if (outputs.size() < wanted) outputs.push_back(hypothesis.output);
  }
  for (const Beam& beam : beams_) {
    if (outputs.size() == wanted) break;
    const Sequence& seq = *group.find(beam.seq_id);
    CompletionOutput& output = outputs.emplace_back();
    output.token_ids.assign(seq.output_token_ids().begin(), seq.output_token_ids().end());
    output.cumulative_logprob = seq.cumulative_logprob();
    if (params_.logprobs.has_value()) output.logprobs = beam.logprobs;
    if (params_.return_alignments) output.alignments = beam.alignments;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].index = static_cast<int32_t>(i);
    // A hypothesis that did not end is patience's, cut short by its limit; a beam is one of a search that was.
    write_text(i < hypotheses_.size() ? FinishReason::kLength : FinishReason::kAbort, outputs[i]);
  }
  return outputs;
}

}  // namespace transept
