// The fake engine of fake_engine_testing.h (compiled into the tests only), and tests that it notices what it is there
// for.
#include "scheduling/fake_engine_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "base/check.h"

namespace transept::testing {
namespace {

constexpr uint64_t kPoison = ~uint64_t{0};

uint64_t mix(uint64_t state, uint64_t value) {
  state = (state ^ value) * 0x9E3779B97F4A7C15u;
  return state ^ (state >> 29);
}

// What the encoder leaves of its input at a position: it depends on the whole input.
uint64_t encoded(std::span<const int32_t> input, size_t position) {
  uint64_t hash = 7;
  for (const int32_t token : input) hash = mix(hash, static_cast<uint64_t>(token));
  return mix(hash, position) >> 1;  // never kPoison
}

uint64_t self_slot(int32_t token, size_t position) { return static_cast<uint64_t>(token) << 32 | position; }

// Of a token whose place a row of an item takes.
uint64_t spliced_slot(uint64_t row, size_t position) {
  return (mix(row, 3) | uint64_t{1} << 63) >> 32 << 32 | position;
}

uint64_t sample_key(uint64_t state, const SamplingParams& params, int32_t index, int32_t position) {
  return mix(mix(mix(state, params.seed), static_cast<uint64_t>(index)), static_cast<uint64_t>(position));
}

int32_t sample(uint64_t state, const SamplingParams& params, int32_t index, int32_t position) {
  return static_cast<int32_t>(sample_key(state, params, index, position) % kVocabSize);
}

double beam_score(uint64_t state, int32_t token) {
  return -static_cast<double>(mix(state, static_cast<uint64_t>(token)) % 10007);
}

bool is_end(const SamplingParams& params, int32_t token, int32_t num_output) {
  return num_output >= params.max_tokens || (token == kEos && !params.ignore_eos);
}

struct BeamStep {
  size_t parent;
  int32_t token;
  double score;
};

// The best `width` continuations of beams with these scores and states.
std::vector<BeamStep> best_continuations(const std::vector<double>& scores, const std::vector<uint64_t>& states,
                                         size_t width) {
  std::vector<BeamStep> all;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (int32_t token = 1; token < kVocabSize; ++token) {
      all.push_back({i, token, scores[i] + beam_score(states[i], token)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const BeamStep& a, const BeamStep& b) { return a.score > b.score; });
  all.resize(std::min(width, all.size()));
  return all;
}

uint64_t state_of(const FakeRequest& request, const std::vector<int32_t>& output) {
  uint64_t state = 1;
  std::vector<uint64_t> self;
  for (const auto* part : std::initializer_list<const std::vector<int32_t>*>{&request.decoder, &output}) {
    for (const int32_t token : *part) self.push_back(self_slot(token, self.size()));
  }
  for (const EncoderItem& item : request.all_items()) {
    for (size_t i = 0; i < item.token_ids.size(); ++i) {
      const uint64_t row = encoded(item.token_ids, i);
      if (has(item.consumers, Consumers::kCross)) state = mix(state, row);
      const size_t place = static_cast<size_t>(item.splice_offset) + i;
      if (has(item.consumers, Consumers::kSplice)) self.at(place) = spliced_slot(row, place);
    }
  }
  for (const uint64_t slot : self) state = mix(state, slot);
  return state;
}

Texts reference_beams(const FakeRequest& request) {
  Texts beams = {{}};
  std::vector<double> scores = {0};
  for (int32_t step = 0; step < request.params.max_tokens; ++step) {
    std::vector<uint64_t> states;
    for (const auto& beam : beams) states.push_back(state_of(request, beam));
    Texts next;
    std::vector<double> next_scores;
    for (const BeamStep& best : best_continuations(scores, states, static_cast<size_t>(request.params.num_beams))) {
      next.push_back(beams[best.parent]);
      next.back().push_back(best.token);
      next_scores.push_back(best.score);
    }
    beams = std::move(next);
    scores = std::move(next_scores);
  }
  return beams;
}

}  // namespace

std::vector<EncoderItem> FakeRequest::all_items() const {
  std::vector<EncoderItem> all = items;
  if (encoder.empty()) return all;
  all.assign(1, EncoderItem(encoder));
  all.front().digest = encoder_digest;
  return all;
}

Texts reference_texts(const FakeRequest& request) {
  if (request.params.num_beams > 1) return reference_beams(request);
  Texts texts;
  for (int32_t index = 0; index < request.params.n; ++index) {
    std::vector<int32_t>& text = texts.emplace_back();
    do {
      const int32_t position = static_cast<int32_t>(request.decoder.size() + text.size());
      text.push_back(sample(state_of(request, text), request.params, index, position));
    } while (!is_end(request.params, text.back(), static_cast<int32_t>(text.size())));
  }
  return texts;
}

// ---- The model

FakeModel::FakeModel(const BlockSpaceManager::Options& options) {
  for (const TableSpec& spec : options.specs) {
    const auto size = static_cast<size_t>(spec.tokens_per_block > 0 ? spec.tokens_per_block : options.block_size);
    tokens_per_block_[static_cast<size_t>(spec.owner)].push_back(size);
    block_size_ = std::max(block_size_, size);
  }
  device_.assign(block_size_ * static_cast<size_t>(options.num_device_blocks), kPoison);
  host_.assign(block_size_ * static_cast<size_t>(options.num_host_blocks), kPoison);
}

FakeModel::Tables FakeModel::tables_of(const SequenceGroupMetadata& group, size_t seq_idx) {
  const size_t count = group.sequence_tables.size() / group.seq_data.size();
  return Tables(group.sequence_tables.begin(), group.sequence_tables.size()).subspan(seq_idx * count, count);
}

// An empty table is not to be written.
void FakeModel::write(TableOwner owner, Tables tables, size_t position, uint64_t word) {
  const std::vector<size_t>& sizes = tokens_per_block_[static_cast<size_t>(owner)];
  CHECK(tables.size() == sizes.size() && !tables.empty(), "not one table of each spec");
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i].empty()) continue;
    const auto block = static_cast<size_t>(tables[i].at(position / sizes[i]));
    device_.at(block * block_size_ + position % sizes[i]) = word;
  }
}

uint64_t FakeModel::read(TableOwner owner, Tables tables, size_t position) {
  const std::vector<size_t>& sizes = tokens_per_block_[static_cast<size_t>(owner)];
  CHECK(tables.size() == sizes.size() && !tables.empty(), "not one table of each spec");
  uint64_t word = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    const auto block = static_cast<size_t>(tables[i].at(position / sizes[i]));
    const uint64_t found = device_.at(block * block_size_ + position % sizes[i]);
    if (i == 0) word = found;
    CHECK(found == word, "tables of two specs differ at position ", position);
  }
  return word;
}

namespace {

std::span<const BlockTable> all_of(const Recycled<BlockTable>& tables) { return {tables.begin(), tables.size()}; }

}  // namespace

void FakeModel::apply(const BlockMoves& moves) {
  const auto transfer = [this](const Slots& from, Slots& to, const std::vector<BlockCopy>& copies) {
    for (const BlockCopy& copy : copies) {
      const size_t src = static_cast<size_t>(copy.src) * block_size_, dst = static_cast<size_t>(copy.dst) * block_size_;
      for (size_t i = 0; i < block_size_; ++i) to.at(dst + i) = from.at(src + i);
    }
  };
  const auto poison = [this](Slots& slots, const std::vector<BlockId>& blocks) {
    for (const BlockId block : blocks) {
      std::fill_n(slots.begin() + static_cast<int64_t>(block) * static_cast<int64_t>(block_size_), block_size_,
                  kPoison);
    }
  };
  transfer(device_, host_, moves.swap_out);
  poison(device_, moves.freed_device);
  transfer(host_, device_, moves.swap_in);
  poison(host_, moves.freed_host);
  transfer(device_, device_, moves.copy);
  num_copied_blocks_ += static_cast<int64_t>(moves.copy.size());
}

// Positions [begin, end) of the item, to the tables that want them.
void FakeModel::encode(const PlannedEncode& encode, size_t begin, size_t end) {
  CHECK(encode.num_positions == static_cast<int32_t>(encode.token_ids.size()));
  CHECK(encode.writes != Consumers::kNone && (encode.writes & encode.consumers) == encode.writes);
  for (size_t i = begin; i < end; ++i) {
    const uint64_t row = encoded(encode.token_ids, i);
    if (has(encode.writes, Consumers::kCross)) {
      write(TableOwner::kGroup, all_of(encode.group_tables),
            static_cast<size_t>(encode.cross.position(static_cast<int32_t>(i), encode.num_positions)), row);
    }
    if (has(encode.writes, Consumers::kSplice)) write(TableOwner::kItem, all_of(encode.item_tables), i, row);
  }
}

void FakeModel::encode_long(const LongEncode& encode) {
  long_encode_ended_ = false;
  if (!encode.runs) {
    num_dropped_encodes_ += long_encode_.runs;
    long_encode_.runs = false;
    return;
  }
  if (encode.begins) {
    num_dropped_encodes_ += long_encode_.runs;
    long_encode_ = encode;
    num_encoded_ = 0;
  }
  CHECK(long_encode_.runs && long_encode_.encode.group_id == encode.encode.group_id &&
            long_encode_.encode.item == encode.encode.item,
        "another encode is under way");
  const size_t size = long_encode_.encode.token_ids.size();
  const size_t end = encode.to_the_end ? size : std::min(num_encoded_ + pace_, size);
  this->encode(long_encode_.encode, num_encoded_, end);
  num_encoded_ = end;
  if (end < size) return;
  long_encode_ended_ = true;
  long_encode_.runs = false;
  ++num_encodes_;
}

void FakeModel::write_rows(const SequenceGroupMetadata& group) {
  for (size_t s = 0; s < group.seq_data.size(); ++s) {
    const SequenceData& seq = group.seq_data[s];
    for (size_t i = 0; i < seq.token_ids.size(); ++i) {
      const size_t position = static_cast<size_t>(seq.context_len) + i;
      write(TableOwner::kSequence, tables_of(group, s), position, self_slot(seq.token_ids[i], position));
    }
    for (size_t i = 0; s == 0 && i < group.splices.size(); ++i) splice(group.splices[i], group);
  }
}

void FakeModel::splice(const PlannedSplice& splice, const SequenceGroupMetadata& group) {
  CHECK(splice.first_row + splice.num_rows <= static_cast<int32_t>(group.seq_data[0].token_ids.size()));
  for (int32_t i = 0; i < splice.num_rows; ++i) {
    const uint64_t row = read(TableOwner::kItem, all_of(splice.item_tables),
                              static_cast<size_t>(splice.first_slot) + static_cast<size_t>(i));
    CHECK(row != kPoison, "poison in a row of group ", group.group_id.value());
    const auto position = static_cast<size_t>(group.seq_data[0].context_len) + static_cast<size_t>(splice.first_row) +
                          static_cast<size_t>(i);
    write(TableOwner::kSequence, tables_of(group, 0), position, spliced_slot(row, position));
    ++num_spliced_rows_;
  }
}

uint64_t FakeModel::read(const SequenceGroupMetadata& group, size_t seq_idx) {
  const SequenceData& seq = group.seq_data[seq_idx];
  uint64_t state = 1;
  for (size_t i = 0; i < static_cast<size_t>(group.num_cross_tokens); ++i) {
    const uint64_t cross = read(TableOwner::kGroup, all_of(group.group_tables), i);
    CHECK(cross != kPoison, "poison in a cross block of group ", group.group_id.value());
    state = mix(state, cross);
  }
  for (size_t i = 0; i < static_cast<size_t>(seq.context_len) + seq.token_ids.size(); ++i) {
    const uint64_t self = read(TableOwner::kSequence, tables_of(group, seq_idx), i);
    CHECK(self != kPoison && (self & 0xFFFFFFFFu) == i, "sequence ", seq.seq_id.value(), " misses token ", i);
    state = mix(state, self);
  }
  return state;
}

FakeModel::States FakeModel::execute(const SchedulerOutputs& plan) {
  apply(plan.moves);
  encode_long(plan.long_encode);
  CHECK(!long_encode_.runs || plan.encodes.empty(), "a whole encode in the midst of a long one");
  encode_all(plan);
  return compute_rows(plan);
}

FakeModel::States FakeModel::begin(const SchedulerOutputs& plan) {
  CHECK(!plan.long_encode.runs, "a long encode beside other steps");
  apply(plan.moves);
  return compute_rows(plan);
}

void FakeModel::end(const SchedulerOutputs& plan) { encode_all(plan); }

void FakeModel::encode_all(const SchedulerOutputs& plan) {
  for (const PlannedEncode& planned : plan.encodes) {
    encode(planned, 0, planned.token_ids.size());
    ++num_encodes_;
  }
}

// All rows of a step are written before any is read, as attention does it.
FakeModel::States FakeModel::compute_rows(const SchedulerOutputs& plan) {
  for (const SequenceGroupMetadata& group : plan.groups) write_rows(group);
  States states;
  for (const SequenceGroupMetadata& group : plan.groups) {
    for (size_t s = 0; s < group.seq_data.size(); ++s) {
      const uint64_t state = read(group, s);
      if (group.seq_data[s].sampled) states[group.seq_data[s].seq_id] = state;
    }
  }
  return states;
}

// ---- The engine

FakeEngine::FakeEngine(const Scheduler::Options& options, const BlockSpaceManager::Options& block_options)
    : scheduler_(options, block_options, clock_),
      model_(block_options),
      steps_(static_cast<size_t>(options.max_steps_in_flight)) {}

Status FakeEngine::add(GroupId id, const FakeRequest& request) {
  SequenceGroup::Init init;
  init.group_id = id;
  init.request_id = str_cat("r", id.value());
  init.params = request.params;
  init.inputs.items = request.all_items();
  init.inputs.prompt_token_ids = request.decoder;
  init.first_seq_id = scheduler_.next_seq_id();
  init.shares_items = !init.inputs.items.empty() && init.inputs.items.front().digest.has_value();
  init.arrival_time = clock_.now();
  return scheduler_.add_seq_group(std::make_unique<SequenceGroup>(init));
}

bool FakeEngine::abort(GroupId id) {
  beams_.erase(id);
  return scheduler_.abort_seq_group(id);
}

bool FakeEngine::step() {
  if (!has_several_steps()) return begin_step() && finish_step();
  while (scheduler_.may_schedule() && begin_step()) {
  }
  return scheduler_.num_steps_in_flight() > 0 && finish_step();
}

bool FakeEngine::begin_step() {
  const auto num_in_flight = static_cast<size_t>(has_several_steps() ? scheduler_.num_steps_in_flight() : 0);
  newest_ = (oldest_ + num_in_flight) % steps_.size();
  Step& step = steps_[newest_];
  scheduler_.schedule(step.plan);
  clock_.advance(std::chrono::milliseconds(1));
  if (step.plan.empty()) return false;
  if (has_several_steps()) step.states = model_.begin(step.plan);
  return true;
}

bool FakeEngine::finish_step() {
  Step& step = steps_[oldest_];
  oldest_ = (oldest_ + 1) % steps_.size();
  if (has_several_steps()) {
    model_.end(step.plan);
  } else {
    step.states = model_.execute(step.plan);
  }
  scheduler_.mark_computed(step.plan, model_.long_encode_ended());
  for (const SequenceGroupMetadata& metadata : step.plan.groups) update(metadata, step.states);
  scheduler_.free_finished_seq_groups();
  return true;
}

void FakeEngine::update(const SequenceGroupMetadata& metadata, const std::map<SeqId, uint64_t>& states) {
  SequenceGroup* found = scheduler_.find(metadata.group_id);
  if (found == nullptr || found->is_finished()) return;  // aborted since it was planned
  SequenceGroup& group = *found;
  for (const SequenceData& data : metadata.seq_data) {
    for (int32_t row = data.first_logits_row; row < static_cast<int32_t>(data.token_ids.size()); ++row) {
      const int32_t predicts = data.context_len + row + 1;
      if (predicts < group.find(data.seq_id)->num_prompt_tokens()) prompt_rows_[group.group_id()].push_back(predicts);
    }
  }
  if (!metadata.seq_data[0].sampled) return;
  if (group.params().num_beams > 1) {
    update_beams(group, states);
  } else {
    update_samples(group, states);
  }
  if (!group.is_finished()) return;
  Texts& texts = results_[group.group_id()];
  if (group.params().num_beams > 1) {
    for (const SeqId id : beams_[group.group_id()]) {
      const auto output = group.find(id)->output_token_ids();
      texts.emplace_back(output.begin(), output.end());
    }
    beams_.erase(group.group_id());
    return;
  }
  for (const auto& seq : group.seqs()) {
    const auto output = seq->output_token_ids();
    texts.emplace_back(output.begin(), output.end());
  }
}

void FakeEngine::append(SequenceGroup& group, Sequence& seq, int32_t token) {
  seq.append_token(token);
  if (is_end(group.params(), token, seq.num_output_tokens())) {
    const bool at_length = seq.num_output_tokens() >= group.params().max_tokens;
    scheduler_.finish_sequence(group, seq.id(), at_length ? FinishReason::kLength : FinishReason::kStop);
  }
}

void FakeEngine::update_samples(SequenceGroup& group, const std::map<SeqId, uint64_t>& states) {
  const bool is_first = group.seqs().size() == 1 && group.seqs()[0]->num_output_tokens() == 0;
  if (is_first) {
    const uint64_t state = states.at(group.seqs()[0]->id());
    for (int32_t i = 1; i < group.params().n; ++i) scheduler_.fork_sequence(group, group.seqs()[0]->id());
    for (const auto& seq : group.seqs()) {
      append(group, *seq, sample(state, group.params(), seq->index(), seq->num_tokens()));
    }
    return;
  }
  for (const auto& seq : group.seqs()) {
    if (seq->is_finished()) continue;
    append(group, *seq, sample(states.at(seq->id()), group.params(), seq->index(), seq->num_tokens()));
  }
}

void FakeEngine::update_beams(SequenceGroup& group, const std::map<SeqId, uint64_t>& states_by_id) {
  std::vector<SeqId>& beams = beams_[group.group_id()];
  if (beams.empty()) beams.push_back(group.seqs()[0]->id());
  std::vector<double> scores;
  std::vector<uint64_t> states;
  for (const SeqId id : beams) {
    scores.push_back(group.find(id)->cumulative_logprob());
    states.push_back(states_by_id.at(id));
  }
  const std::vector<BeamStep> best = best_continuations(scores, states, static_cast<size_t>(group.params().num_beams));
  // The first child takes its parent over; forks come before anything is appended.
  std::vector<SeqId> next;
  std::vector<bool> is_taken(beams.size());
  for (const BeamStep& step : best) {
    const SeqId parent = beams[step.parent];
    next.push_back(is_taken[step.parent] ? scheduler_.fork_sequence(group, parent).id() : parent);
    is_taken[step.parent] = true;
  }
  for (size_t i = 0; i < beams.size(); ++i) {
    if (!is_taken[i]) scheduler_.remove_sequence(group, beams[i]);
  }
  for (size_t i = 0; i < best.size(); ++i) {
    Sequence& seq = *group.find(next[i]);
    seq.append_token(best[i].token, beam_score(states[best[i].parent], best[i].token));
    if (seq.num_output_tokens() >= group.params().max_tokens) {
      scheduler_.finish_sequence(group, seq.id(), FinishReason::kLength);
    }
  }
  beams = std::move(next);
}

// ---- Does it notice?

namespace {

TEST(FakeModelDeathTest, NoticesAWrongTable) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  FakeModel model({.block_size = 2, .num_device_blocks = 4});
  SchedulerOutputs plan;
  SequenceGroupMetadata& group = plan.groups.push();
  SequenceData& seq = group.seq_data.push();
  seq.token_ids = {5, 6};
  seq.sampled = true;
  group.sequence_tables.push() = {1};
  EXPECT_EQ(model.execute(plan).size(), 1u);
  seq.context_len = 2;
  group.sequence_tables[0] = {1, 2};
  EXPECT_EQ(model.execute(plan).size(), 1u);
  group.sequence_tables[0] = {2, 3};
  EXPECT_DEATH(model.execute(plan), "misses token 0");
  group.sequence_tables[0] = {0, 3};
  EXPECT_DEATH(model.execute(plan), "misses token 0");
  group.sequence_tables[0] = {1, 2};
  plan.moves.freed_device = {1};
  EXPECT_DEATH(model.execute(plan), "misses token 0");
}

TEST(FakeModelDeathTest, NoticesTablesOfTheWrongSpec) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  FakeModel model({.block_size = 2,
                   .specs = {{TableOwner::kSequence}, {TableOwner::kGroup}, {TableOwner::kSequence, 3}},
                   .num_device_blocks = 6});
  SchedulerOutputs plan;
  SequenceGroupMetadata& group = plan.groups.push();
  SequenceData& seq = group.seq_data.push();
  seq.token_ids = {5, 6, 7};
  seq.sampled = true;
  group.sequence_tables.push() = {1, 2};
  EXPECT_DEATH(model.execute(plan), "not one table of each spec");
  group.sequence_tables.push() = {3};
  EXPECT_EQ(model.execute(plan).size(), 1u);
  seq.context_len = 3;
  group.sequence_tables[0] = {1, 2, 0};
  group.sequence_tables[1] = {4, 5};
  EXPECT_DEATH(model.execute(plan), "tables of two specs differ at position 0");
  group.sequence_tables[0] = {3, 2, 0};
  group.sequence_tables[1] = {1, 4};
  EXPECT_DEATH(model.execute(plan), "tables of two specs differ");
}

}  // namespace
}  // namespace transept::testing
