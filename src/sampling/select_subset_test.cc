// Proves what `select` gives for requests whose tokens are of a subset of the vocabulary: what the whole row gives
// where all other scores are -inf, for every kind of request; and the same bits whether the subset's outputs were
// copied or are picked out of all, whatever stands beside them in the step, in every type of weights.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/folder_testing.h"
#include "layers/chosen_outputs.h"
#include "ops/cpu_device.h"
#include "sampling/select.h"
#include "sampling/select_row.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

constexpr int64_t kVocab = 700, kDim = 72;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// One request group: its ids, where their outputs were copied to, and what it asks for.
struct Group {
  std::vector<int32_t> ids;
  std::unique_ptr<OutputCopies> copies = std::make_unique<OutputCopies>();  // at a fixed address
  VocabularySubset copied, picked;
  std::vector<RowRequest> rows;  // hidden_row counts from the group's first
  std::vector<std::unique_ptr<RowEdits>> edits;
  int64_t num_hidden = 0;
};

class SelectSubsetTest : public ::testing::TestWithParam<WeightFormat> {
 protected:
  void SetUp() override {
    std::normal_distribution<float> normal(0.0f, 0.3f);
    std::vector<float> weight(static_cast<size_t>(kVocab * kDim)), bias(static_cast<size_t>(kVocab));
    for (float& value : weight) value = normal(random_);
    for (float& value : bias) value = normal(random_);
    folder_.write("model.safetensors",
                  testing::safetensors_bytes({{"head", "F32", {kVocab, kDim}, testing::bytes_of(weight)}}));
    StatusOr<std::unique_ptr<WeightMap>> weights = WeightMap::open(folder_.path());
    ASSERT_TRUE(weights.ok()) << weights.status();
    PackOptions packing(threads_, GetParam(), nullptr);
    StatusOr<LmHead> head = LmHead::load(**weights, "head", kVocab, kDim, bias, packing);
    ASSERT_TRUE(head.ok()) << head.status();
    head_ = std::make_unique<LmHead>(std::move(head).value());
    outputs_ = std::make_unique<ChosenOutputs>(head_->linear(), 40);
    hidden_.resize(static_cast<size_t>(100 * kDim));
    for (float& value : hidden_) value = 2 * normal(random_);
  }

  int32_t draw(int32_t below) { return static_cast<int32_t>(random_() % static_cast<uint32_t>(below)); }

  std::unique_ptr<RowEdits> draw_edits(const std::vector<int32_t>& ids) {
    const auto id = [&] {
      return draw(3) == 0 ? draw(kVocab) : ids[static_cast<size_t>(draw(std::ssize(ids) & 0x7fff))];
    };
    auto edits = std::make_unique<RowEdits>();
    if (draw(2) == 0) edits->biases = {{id(), 3.0f}, {id(), -2.5f}};
    if (draw(2) == 0) edits->repetition_penalty = 1.3f, edits->seen = {id(), id(), id()};
    if (draw(2) == 0) {
      edits->presence_penalty = 0.5f, edits->frequency_penalty = 0.25f;
      edits->generated = {{id(), 2}, {id(), 1}};
    }
    for (int32_t i = draw(9); i > 0; --i) edits->banned.push_back(id());
    if (draw(4) == 0) edits->banned_ranges = {{0, draw(50)}, {650, std::numeric_limits<int32_t>::max()}};
    if (draw(4) == 0) edits->timestamp_begin = 300 + draw(300);
    if (draw(6) == 0) edits->forced_token = id();
    edits->renormalize = draw(4) == 0;
    return edits;
  }

  RowRequest draw_request(Group& group) {
    RowRequest row;
    row.seed = random_();
    row.position = static_cast<uint32_t>(draw(30));
    switch (draw(5)) {
      case 0: break;  // greedy
      case 1: row.temperature = 0.8f, row.top_k = draw(2) * 20, row.top_p = draw(2) == 0 ? 1.0f : 0.9f; break;
      case 2: row.num_candidates = 2 + draw(12); break;
      case 3: row.num_logprobs = draw(6); break;
      default: row.target_token = draw(kVocab), row.num_logprobs = draw(4);
    }
    if (draw(3) != 0) {
      group.edits.push_back(draw_edits(group.ids));
      row.edits = group.edits.back().get();
    }
    return row;
  }

  // Rows of one group, as a step has them: of one sequence, of several, or several samples of one row.
  Group draw_group() {
    Group group;
    const int32_t one_in = 2 + draw(20);
    for (int32_t id = 0; id < kVocab; ++id) {
      if (id == 2 || draw(one_in) == 0) group.ids.push_back(id);
    }
    group.num_hidden = 1 + draw(7);
    for (int64_t row = 0; row < group.num_hidden; ++row) {
      for (int32_t i = draw(4) == 0 ? 3 : 1; i > 0; --i) {
        group.rows.push_back(draw_request(group));
        group.rows.back().hidden_row = static_cast<int32_t>(row);
        group.rows.back().seq_index = static_cast<uint32_t>(i);
      }
    }
    CHECK(outputs_->gather(threads_, group.ids, *group.copies));
    group.copied = {group.ids, group.copies.get()};
    group.picked = {group.ids, nullptr};
    return group;
  }

  // What comes of groups in one step; which[i]: the subset of group i, or null.
  template <typename Which>
  SampleOutput run(std::span<const Group> groups, Which&& subset_of) {
    std::vector<RowRequest> rows;
    int64_t num_hidden = 0;
    for (const Group& group : groups) {
      for (RowRequest row : group.rows) {
        row.hidden_row += static_cast<int32_t>(num_hidden);
        row.subset = subset_of(group);
        rows.push_back(row);
      }
      num_hidden += group.num_hidden;
    }
    SampleOutput output;
    CpuDevice device{threads_, detect_isa()};
    Context context{device, arena_};
    select(context, *head_, TensorView(hidden_.data(), DType::kFloat32, {num_hidden, kDim}), rows, output);
    return output;
  }

  static void expect_same(const SampleOutput& a, size_t first_a, const SampleOutput& b, size_t first_b, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const RowSample &x = a.rows[first_a + i], &y = b.rows[first_b + i];
      ASSERT_EQ(x.token_id, y.token_id) << i;
      ASSERT_EQ(x.logprob, y.logprob) << i;
      ASSERT_EQ(x.rank, y.rank) << i;
      ASSERT_EQ(x.num_top, y.num_top) << i;
      for (int32_t j = 0; j < x.num_top; ++j) {
        const TokenLogprob &p = a.top[static_cast<size_t>(x.top_begin + j)],
                           &q = b.top[static_cast<size_t>(y.top_begin + j)];
        ASSERT_EQ(p.token_id, q.token_id) << i;
        ASSERT_EQ(p.logprob, q.logprob) << i;
        ASSERT_EQ(p.rank, q.rank) << i;
      }
    }
  }

  // The definition: the whole row, with -inf wherever the subset has no id.
  void expect_as_masked(const Group& group, const SampleOutput& output) {
    std::vector<float> logits(static_cast<size_t>(group.num_hidden * kVocab)), masked;
    CpuDevice device{threads_, detect_isa()};
    Context context{device, arena_};
    head_->logits(context, TensorView(hidden_.data(), DType::kFloat32, {group.num_hidden, kDim}),
                  TensorView(logits.data(), DType::kFloat32, {group.num_hidden, kVocab}));
    std::vector<Candidate> scratch(static_cast<size_t>(kVocab));
    for (size_t i = 0; i < group.rows.size(); ++i) {
      masked.assign(static_cast<size_t>(kVocab), kNever);
      for (const int32_t id : group.ids) {
        masked[static_cast<size_t>(id)] = logits[static_cast<size_t>(group.rows[i].hidden_row * kVocab + id)];
      }
      RowSample expected;
      std::vector<TokenLogprob> top(static_cast<size_t>(num_top_entries(group.rows[i], kVocab)));
      select_row(context, group.rows[i], masked, scratch, expected, top);
      const RowSample& found = output.rows[i];
      // A penalty divides -inf, a bias leaves it: ids outside stay where they are.
      ASSERT_EQ(found.token_id, expected.token_id) << i;
      expect_near(found.logprob, expected.logprob, i);
      ASSERT_EQ(found.num_top, expected.num_top) << i;
      if (std::isfinite(expected.logprob)) {
        ASSERT_EQ(found.rank, expected.rank) << i;
      }
      for (int32_t j = 0; j < found.num_top; ++j) {
        const TokenLogprob& entry = output.top[static_cast<size_t>(found.top_begin + j)];
        ASSERT_EQ(entry.token_id, top[static_cast<size_t>(j)].token_id) << i;
        expect_near(entry.logprob, top[static_cast<size_t>(j)].logprob, i);
      }
    }
  }

  // Sums of exponentials in float32, in another order.
  static void expect_near(float found, float expected, size_t i) {
    if (std::isinf(expected)) {
      ASSERT_EQ(found, expected) << i;
    } else {
      ASSERT_NEAR(found, expected, 2e-5 + 1e-6 * std::abs(expected)) << i;
    }
  }

  std::mt19937 random_{7};
  testing::TestFolder folder_;
  ThreadPool threads_{3};
  Arena arena_{size_t{8} << 20};
  std::unique_ptr<LmHead> head_;
  std::unique_ptr<ChosenOutputs> outputs_;
  std::vector<float> hidden_;
};

INSTANTIATE_TEST_SUITE_P(Weights, SelectSubsetTest,
                         ::testing::Values(kFloat32Format, kBFloat16Format, kFloat16Format, kInt8Format),
                         [](const auto& type) { return weight_format_name(type.param); });

const VocabularySubset* copied(const Group& group) { return &group.copied; }
const VocabularySubset* picked(const Group& group) { return &group.picked; }

TEST_P(SelectSubsetTest, IsTheWholeRowWithAllOtherIdsForbidden) {
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    Group group = draw_group();
    const SampleOutput fast = run(std::span(&group, 1), copied), reference = run(std::span(&group, 1), picked);
    expect_same(fast, 0, reference, 0, group.rows.size());
    expect_as_masked(group, fast);
    outputs_->release(*group.copies);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(outputs_->num_free(), outputs_->num_parts());
  EXPECT_EQ(arena_.num_overflows(), 0);
}

// With parts, without, and without a subset at all, mixed and more than fit at once.
TEST_P(SelectSubsetTest, GroupsTogetherGiveWhatTheyGiveAlone) {
  std::vector<Group> groups;
  groups.reserve(12);
  for (int i = 0; i < 12; ++i) groups.push_back(draw_group());
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].copied = {groups[i].ids, groups[i].copies.get()};
    groups[i].picked = {groups[i].ids, nullptr};
  }
  const auto mixed = [&](const Group& group) -> const VocabularySubset* {
    const auto i = &group - groups.data();
    return i % 3 == 0 ? &group.copied : i % 3 == 1 ? &group.picked : nullptr;
  };
  const SampleOutput fast = run(groups, copied), reference = run(groups, picked), some = run(groups, mixed);
  expect_same(fast, 0, reference, 0, fast.rows.size());
  size_t first = 0;
  const std::vector<float> hidden = hidden_;
  int64_t first_hidden = 0;
  for (const Group& group : groups) {
    std::copy(hidden.begin() + first_hidden * kDim, hidden.begin() + (first_hidden + group.num_hidden) * kDim,
              hidden_.begin());
    const SampleOutput alone = run(std::span(&group, 1), copied);
    expect_same(fast, first, alone, 0, group.rows.size());
    expect_same(some, first, mixed(group) != nullptr ? alone : run(std::span(&group, 1), mixed), 0, group.rows.size());
    first += group.rows.size();
    first_hidden += group.num_hidden;
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(first_hidden, 32) << "all rows fit at once";
}

TEST_P(SelectSubsetTest, AForcedTokenComesWhateverTheSubsetSays) {
  const std::vector<int32_t> ids = {3, 5, 8};
  const VocabularySubset subset{ids, {}};
  RowEdits edits;
  edits.forced_token = 600;
  Group group;
  group.num_hidden = 3;
  group.rows = {{.hidden_row = 0, .edits = &edits},
                {.hidden_row = 1, .edits = &edits, .temperature = 1, .num_logprobs = 2},
                {.hidden_row = 2, .edits = &edits, .num_candidates = 4}};
  const SampleOutput output = run(std::span(&group, 1), [&](const Group&) { return &subset; });
  for (const RowSample& sample : output.rows) {
    EXPECT_EQ(sample.token_id, 600);
    EXPECT_EQ(sample.logprob, 0);
  }
  EXPECT_EQ(output.rows[0].num_top, 0);
  EXPECT_EQ(output.rows[1].num_top, 1);
  EXPECT_EQ(output.rows[2].num_top, 1);
  EXPECT_EQ(output.top[static_cast<size_t>(output.rows[2].top_begin)].token_id, 600);
}

// Start-up sizes step memory so, over an arena that has none.
TEST_P(SelectSubsetTest, ADryRunMeasuresWhatAStepTakes) {
  Arena measuring = Arena::measuring();
  CpuDevice device{threads_, detect_isa()};
  Context context{device, measuring, true};
  constexpr int64_t kRows = 64;
  std::vector<float> hidden(static_cast<size_t>(kRows * kDim));  // not read
  select_dry_run(context, *head_, TensorView(hidden.data(), DType::kFloat32, {kRows, kDim}), kRows);
  Group group = draw_group();
  group.rows.clear();
  for (int32_t row = 0; row < kRows; ++row) group.rows.push_back({.hidden_row = row});
  group.num_hidden = kRows;
  run(std::span(&group, 1), copied);
  run(std::span(&group, 1), picked);
  EXPECT_LE(arena_.high_water_bytes(), measuring.high_water_bytes());
}

TEST_P(SelectSubsetTest, PartsThatAreNotThereAreNotTaken) {
  std::vector<int32_t> ids(static_cast<size_t>(kPartColumns) + 1);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::vector<OutputCopies> taken(20);
  for (OutputCopies& copies : taken) EXPECT_TRUE(outputs_->gather(threads_, ids, copies));
  EXPECT_EQ(outputs_->num_free(), 0);
  OutputCopies none;
  EXPECT_FALSE(outputs_->gather(threads_, ids, none));
  EXPECT_TRUE(none.empty());
  outputs_->release(taken[4]);
  EXPECT_EQ(outputs_->num_free(), 2);
  EXPECT_TRUE(outputs_->gather(threads_, ids, none));
}

}  // namespace
}  // namespace transept
