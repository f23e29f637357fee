#include "engine/speculator.h"

#include <algorithm>

#include "base/check.h"
#include "sampling/build_row_edits.h"
#include "sampling/stop_checker.h"
#include "speculation/ngram_drafter.h"
#include "speculation/random_drafter.h"
#include "speculation/text_drafter.h"

namespace transept {
namespace {

constexpr double kHalfLife = 16, kHalfLifeOfAll = 64;  // in drafts
constexpr double kWeightOfAll = 4;                     // of what a new sequence begins with

constexpr double kUsualTruth = 0.5;

// The request's own draft may be a test's truth.
std::unique_ptr<Drafter> make_given(const SpeculationOptions& options, int32_t vocab_size) {
  const bool is_random = options.method == DraftMethod::kRandom;
  if (!is_random && !options.truth.has_value()) return std::make_unique<TextDrafter>(TextDrafter::Text::kGiven);
  return std::make_unique<RandomDrafter>(RandomDrafter::Options{
      options.truth.value_or(kUsualTruth), is_random && options.has_random_length, options.seed, vocab_size});
}

std::unique_ptr<Drafter> make_own(const SpeculationOptions& options, int32_t vocab_size) {
  switch (options.method) {
    case DraftMethod::kGiven:
    case DraftMethod::kModel: return nullptr;
    case DraftMethod::kNgram:
      return std::make_unique<NgramDrafter>(options.prompt_lookup_min, options.prompt_lookup_max);
    case DraftMethod::kCopy: return std::make_unique<TextDrafter>(TextDrafter::Text::kSource);
    case DraftMethod::kRandom: return make_given(options, vocab_size);
  }
  return nullptr;
}

// Whether any edit can forbid a token: else none need be built.
bool can_forbid(const SamplingParams& params) {
  return params.no_repeat_ngram_size > 0 || params.encoder_no_repeat_ngram_size > 0 || !params.bad_words_ids.empty() ||
         params.min_tokens > 0 || params.min_tokens_before_eos > 0 || !params.suppress_tokens.empty() ||
         !params.begin_suppress_tokens.empty() || !params.allowed_token_ids.empty() ||
         params.timestamp_rules.has_value() || params.forced_bos_token_id.has_value() ||
         !params.forced_eos_token_ids.empty();
}

// Rows of sequences that go on, and of their drafts.
bool decodes_alone(const SchedulerOutputs& scheduled) {
  return scheduled.encodes.empty() && !scheduled.long_encode.runs &&
         scheduled.num_decoder_tokens == scheduled.num_seqs + scheduled.num_draft_tokens;
}

const std::vector<int32_t>& encoder_ids(const SequenceGroup& group) {
  static const std::vector<int32_t> kNone;
  return group.items().empty() ? kNone : group.items().front().token_ids;
}

}  // namespace

Speculator::Speculator(const SpeculationOptions& options, const ModelSpec& spec, Scheduler& scheduler,
                       const BlockSpaceManager::Options& blocks, DraftModel model, const Clock& clock)
    : options_(options),
      scheduler_(scheduler),
      vocab_size_(spec.vocab_size),
      is_one_vocabulary_(spec.encoder_takes_ids() && spec.encoder_vocab() == spec.vocab_size),
      given_(make_given(options, spec.vocab_size)),
      own_(make_own(options, spec.vocab_size)),
      model_(model.executor == nullptr ? nullptr
                                       : std::make_unique<ModelDrafter>(std::move(model), blocks, scheduler, clock)),
      replaces_model_(model_ != nullptr && options.truth.has_value()),
      length_(options.is_adaptive) {}

bool Speculator::brings_draft(const SequenceGroup& group) const {
  return !group.params().draft_token_ids.empty() && !replaces_model_;
}

bool Speculator::may_draft(const SequenceGroup& group) const {
  const SamplingParams& params = group.params();
  if (options_.num_speculative_tokens == 0) return false;
  if (replaces_model_ && params.draft_token_ids.empty()) return false;  // no truth: nothing to measure
  const bool has_drafter = own_ != nullptr || (model_ != nullptr && model_->may_draft(group));
  return (has_drafter || !params.draft_token_ids.empty()) && params.num_beams == 1 && !params.score_only &&
         params.max_tokens > 1;
}

void Speculator::add_group(const SequenceGroup& group) {
  if (!may_draft(group)) return;
  SequenceState state;
  state.acceptance = brings_draft(group) ? of_given_ : of_own_;
  state.acceptance.weight = std::min(state.acceptance.weight, kWeightOfAll);
  groups_.emplace(group.group_id(), GroupState(static_cast<size_t>(group.params().num_seqs()), state));
}

void Speculator::draft(SchedulerOutputs& scheduled) {
  if (model_ != nullptr) model_->begin_step();
  if (groups_.empty()) return;
  forget(scheduled.finished);
  asks_.clear();
  num_asked_ = 0;
  may_ask_ = model_ != nullptr && decodes_alone(scheduled) &&
             std::ranges::none_of(scheduled.groups, &SequenceGroupMetadata::is_prompt);
  for (size_t i = 0; i < scheduled.groups.size(); ++i) {
    if (num_spare_tokens() == 0) break;
    const SequenceGroupMetadata& metadata = scheduled.groups[i];
    if (metadata.is_prompt || !groups_.contains(metadata.group_id)) continue;
    const SequenceGroup& group = *scheduler_.find(metadata.group_id);
    for (size_t seq = 0; seq < metadata.seq_data.size(); ++seq) draft_sequence(group, i, seq, scheduled);
  }
  if (!asks_.empty()) draft_by_model(scheduled);
}

// One that decodes: its last token is its one new row.
void Speculator::draft_sequence(const SequenceGroup& group, size_t group_idx, size_t seq_idx,
                                SchedulerOutputs& scheduled) {
  const SequenceData& data = scheduled.groups[group_idx].seq_data[seq_idx];
  const Sequence& seq = *group.find(data.seq_id);
  if (!data.sampled || data.token_ids.size() != 1 || seq.num_output_tokens() == 0) return;
  SequenceState& state = groups_.at(group.group_id())[static_cast<size_t>(seq.index())];
  propose(group, seq, scheduled.num_seqs, state);
  if (num_wanted_ > 0) {
    ModelDrafter::Ask& ask = asks_.push();
    ask.group_idx = group_idx;
    ask.seq_idx = seq_idx;
    ask.group = &group;
    ask.seq = &seq;
    ask.max_tokens = num_wanted_;
    num_asked_ += num_wanted_;
    return;
  }
  cut(group, seq);
  if (!draft_.empty()) scheduler_.add_drafts(scheduled, group_idx, seq_idx, draft_);
}

// All sequences together. What was asked for is spare: nothing has taken it since.
void Speculator::draft_by_model(SchedulerOutputs& scheduled) {
  model_->propose(asks_);
  num_asked_ = 0;
  for (const ModelDrafter::Ask& ask : asks_) {
    draft_.assign(ask.draft.begin(), ask.draft.end());
    if (replaces_model_ && !draft_.empty()) {
      DraftAsk same = ask_of(*ask.group, *ask.seq);
      same.max_tokens = static_cast<int32_t>(draft_.size());
      DraftMemory nothing;  // the truth is found by its place
      given_->propose(same, nothing, draft_);
    }
    cut(*ask.group, *ask.seq);
    if (!draft_.empty()) scheduler_.add_drafts(scheduled, ask.group_idx, ask.seq_idx, draft_);
  }
}

void Speculator::plan_captures(StepPlan& plan) const {
  if (model_ == nullptr || !model_->wants_rows()) return;
  const auto add = [&](GroupId id) {
    if (!groups_.contains(id) || !model_->may_draft(*scheduler_.find(id))) return;
    const std::vector<GroupId>& listed = plan.encoder_captures;
    if (std::find(listed.begin(), listed.end(), id) == listed.end()) plan.encoder_captures.push_back(id);
  };
  for (const PlannedEncode& encode : plan.scheduled.encodes) add(encode.group_id);
  if (plan.scheduled.long_encode.runs) add(plan.scheduled.long_encode.encode.group_id);
}

void Speculator::take_rows(StepOutput& output) {
  if (model_ == nullptr || !model_->wants_rows()) return;
  for (CapturedEncode& encode : output.captured_encodes) {
    if (groups_.contains(encode.group_id)) model_->take_rows(encode.group_id, std::move(encode.values));
  }
}

DraftAsk Speculator::ask_of(const SequenceGroup& group, const Sequence& seq) const {
  DraftAsk ask;
  ask.tokens = seq.token_ids();
  ask.num_prompt = seq.num_prompt_tokens();
  if (is_one_vocabulary_) ask.source = encoder_ids(group);
  ask.given = group.params().draft_token_ids;
  ask.seed = group.params().seed;
  ask.index = seq.index();
  return ask;
}

void Speculator::propose(const SequenceGroup& group, const Sequence& seq, int32_t num_seqs, SequenceState& state) {
  draft_.clear();
  num_wanted_ = 0;
  const SamplingParams& params = group.params();
  DraftAsk ask = ask_of(group, seq);
  const int32_t num_left = std::min(params.max_tokens - seq.num_output_tokens() - 1, num_spare_tokens());
  const auto most = [&](bool is_given) { return std::min(options_.most_tokens(is_given), num_left); };
  state.is_given = brings_draft(group);
  const bool asks_model = may_ask_ && model_->may_draft(group);
  const bool has_drafter = state.is_given || own_ != nullptr || asks_model;
  if (!has_drafter || most(state.is_given) <= 0) return;
  ask.max_tokens = length_.choose(num_seqs, most(state.is_given), state.acceptance);
  if (ask.max_tokens == 0) return;
  if (state.is_given) given_->propose(ask, state.given, draft_);
  if (!draft_.empty() || (own_ == nullptr && !asks_model)) return;
  if (state.is_given && options_.method == DraftMethod::kRandom) return;
  ask.max_tokens = std::min(ask.max_tokens, most(false));
  state.is_given = false;
  if (own_ != nullptr) {
    own_->propose(ask, state.own, draft_);
  } else {
    num_wanted_ = ask.max_tokens;
  }
}

// Rows behind a token that cannot be chosen, or that ends the sequence, would be of no use.
void Speculator::cut(const SequenceGroup& group, const Sequence& seq) {
  const SamplingParams& params = group.params();
  const std::span<const int32_t> output = seq.output_token_ids();
  const bool has_bans = can_forbid(params);
  if (has_bans) generated_.assign(output.begin(), output.end());
  for (size_t i = 0; i < draft_.size(); ++i) {
    const int32_t token = draft_[i];
    const auto num_generated = static_cast<int32_t>(output.size() + i) + 1;
    bool is_end = token < 0 || (vocab_size_ > 0 && token >= vocab_size_) ||
                  check_stop_token(params, token, num_generated).reason != FinishReason::kNone;
    if (has_bans && !is_end) {
      build_row_edits(params, {encoder_ids(group), seq.prompt_token_ids(), generated_, vocab_size_}, edits_);
      is_end = edits_.forbids(token);
      generated_.push_back(token);
    }
    if (!is_end) continue;
    draft_.resize(i);
    return;
  }
}

void Speculator::forget(std::span<const GroupId> gone) {
  for (const GroupId id : gone) groups_.erase(id);
}

void Speculator::count(const StepPlan& plan, const StepOutput& output,
                       std::span<const OutputProcessor::DraftOutcome> outcomes, DraftStats& stats) {
  const SchedulerOutputs& scheduled = plan.scheduled;
  for (const OutputProcessor::DraftOutcome& outcome : outcomes) {
    SequenceState& state = groups_.at(outcome.group_id)[static_cast<size_t>(outcome.seq_index)];
    // Drafts behind the sequence's end say nothing.
    const bool was_cut = outcome.num_tokens <= outcome.num_accepted;
    const int32_t num_told = was_cut ? outcome.num_accepted : outcome.num_drafts;
    state.acceptance.count(num_told, outcome.num_accepted, kHalfLife);
    (state.is_given ? of_given_ : of_own_).count(num_told, outcome.num_accepted, kHalfLifeOfAll);
    ++stats.num_drafts;
    stats.num_draft_tokens += outcome.num_drafts;
    stats.num_accepted_tokens += outcome.num_accepted;
    for (int32_t i = 0; i < outcome.num_accepted; ++i) ++stats.num_accepted_at[static_cast<size_t>(i)];
  }
  if (groups_.empty() || !decodes_alone(scheduled)) return;
  const double to_draft = model_ == nullptr ? 0 : model_->seconds();
  length_.count(scheduled.num_seqs, scheduled.num_draft_tokens, output.decode_seconds + to_draft);
}

}  // namespace transept
