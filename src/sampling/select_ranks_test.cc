// Proves that ranks which divide the vocabulary choose what one rank does, to the bit: every kind of request, alone,
// many in a step and several of one row, with ranks that have no piece at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "base/folder_testing.h"
#include "comm/ranks_testing.h"
#include "ops/cpu_device.h"
#include "sampling/gather_columns.h"
#include "sampling/select.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

constexpr int64_t kDim = 24;

// Requests for rows of one step. Edits and subsets are at fixed addresses.
struct Step {
  std::vector<RowRequest> rows;
  std::vector<std::unique_ptr<RowEdits>> edits;
  std::vector<int32_t> ids;
  VocabularySubset subset;
  int64_t num_hidden = 0;
};

class RanksOfVocabulary : public ::testing::TestWithParam<std::tuple<int64_t, WeightFormat>> {
 protected:
  void SetUp() override {
    std::normal_distribution<float> normal(0.0f, 0.5f);
    std::vector<float> weight(static_cast<size_t>(vocab() * kDim));
    for (float& value : weight) value = normal(random_);
    for (int64_t i = 0; i < vocab(); ++i) bias_.push_back(normal(random_));
    folder_.write("model.safetensors",
                  testing::safetensors_bytes({{"head", "F32", {vocab(), kDim}, testing::bytes_of(weight)}}));
    hidden_.resize(static_cast<size_t>(80 * kDim));
    for (float& value : hidden_) value = 2 * normal(random_);
    // Equal rows have equal scores: ties between ids of different ranks.
    std::copy_n(hidden_.begin(), kDim, hidden_.begin() + kDim);
  }

  int64_t vocab() const { return std::get<0>(GetParam()); }
  int32_t draw(int64_t below) { return static_cast<int32_t>(random_() % static_cast<uint64_t>(below)); }

  void draw_edits(RowEdits& edits) {
    const auto id = [&] { return draw(vocab()); };
    if (draw(2) == 0) edits.biases = {{id(), 3.0f}, {id(), -2.5f}};
    if (draw(3) == 0) edits.repetition_penalty = 1.3f, edits.seen = {id(), id(), id()};
    if (draw(3) == 0) {
      edits.presence_penalty = 0.5f, edits.frequency_penalty = 0.25f;
      edits.generated = {{id(), 2}, {id(), 1}};
    }
    for (int32_t i = draw(9); i > 0; --i) edits.banned.push_back(id());
    if (draw(4) == 0) edits.banned_ranges = {{0, id()}};
    if (draw(4) == 0) edits.timestamp_begin = id();
    if (draw(8) == 0) edits.forced_token = id();
    edits.renormalize = draw(5) == 0;
  }

  RowRequest draw_request(Step& step) {
    RowRequest row;
    row.seed = random_();
    row.position = static_cast<uint32_t>(draw(30));
    row.wants_logprob = draw(4) != 0;
    switch (draw(6)) {
      case 0: break;  // greedy
      case 1: row.temperature = 0.8f, row.top_k = draw(2) * 20, row.top_p = draw(2) == 0 ? 1.0f : 0.9f; break;
      case 2: row.num_candidates = 2 + draw(12); break;
      case 3: row.num_logprobs = draw(6); break;
      case 4: row.num_candidates = kMany; break;
      default: row.target_token = draw(vocab()), row.num_logprobs = draw(4), row.target_vocab = draw(2) * draw(vocab());
    }
    if (draw(3) != 0) {
      step.edits.push_back(std::make_unique<RowEdits>());
      draw_edits(*step.edits.back());
      row.edits = step.edits.back().get();
    }
    if (draw(5) == 0) row.subset = &step.subset;
    return row;
  }

  void draw_step(Step& step) {
    for (int32_t id = 0; id < vocab(); ++id) {
      if (draw(9) == 0) step.ids.push_back(id);
    }
    if (step.ids.empty()) step.ids.push_back(0);
    step.subset = {step.ids, nullptr};
    step.num_hidden = draw(3) == 0 ? 1 : draw(3) == 0 ? 70 : 1 + draw(9);
    for (int32_t row = 0; row < step.num_hidden; ++row) {
      for (int32_t i = draw(5) == 0 ? 3 : 1; i > 0; --i) {
        step.rows.push_back(draw_request(step));
        step.rows.back().hidden_row = row;
        step.rows.back().seq_index = static_cast<uint32_t>(i);
      }
    }
  }

  // What this rank's choice is over all steps, with the step memory that dry runs ask for.
  std::vector<SampleOutput> run(std::span<const Step> steps, int num_threads, Communicator* ranks) {
    ThreadPool threads(num_threads);
    std::unique_ptr<WeightMap> weights = std::move(WeightMap::open(folder_.path())).value();
    PackOptions packing(threads, std::get<1>(GetParam()), nullptr);
    if (ranks != nullptr) packing.ranks = {ranks->rank(), ranks->size()};
    StatusOr<LmHead> head = LmHead::load(*weights, "head", vocab(), kDim, bias_, packing);
    CHECK(head.ok(), error_message(head.status()));
    CpuDevice device{threads, detect_isa()};
    std::vector<SampleOutput> outputs(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      const TensorView hidden(hidden_.data(), DType::kFloat32, {steps[i].num_hidden, kDim});
      Arena measuring = Arena::measuring();
      Context dry{device, measuring, true, nullptr, ranks};
      select_dry_run(dry, *head, hidden, steps[i].num_hidden);
      Arena arena(measuring.high_water_bytes());
      Context context{device, arena, false, nullptr, ranks};
      if (ranks != nullptr) ranks->begin_step(static_cast<int64_t>(i));
      select(context, *head, hidden, steps[i].rows, outputs[i]);
      CHECK(arena.num_overflows() == 0);
    }
    if (ranks != nullptr) CHECK(ranks->barrier().ok());
    return outputs;
  }

  static void expect_same(const SampleOutput& found, const SampleOutput& wanted) {
    ASSERT_EQ(found.rows.size(), wanted.rows.size());
    for (size_t i = 0; i < wanted.rows.size(); ++i) {
      const RowSample &x = found.rows[i], &y = wanted.rows[i];
      ASSERT_EQ(x.token_id, y.token_id) << i;
      ASSERT_EQ(x.logprob, y.logprob) << i;
      ASSERT_EQ(x.rank, y.rank) << i;
      ASSERT_EQ(x.num_top, y.num_top) << i;
      for (int32_t j = 0; j < y.num_top; ++j) {
        const TokenLogprob &p = found.top[static_cast<size_t>(x.top_begin + j)],
                           &q = wanted.top[static_cast<size_t>(y.top_begin + j)];
        ASSERT_EQ(p.token_id, q.token_id) << i;
        ASSERT_EQ(p.logprob, q.logprob) << i;
        ASSERT_EQ(p.rank, q.rank) << i;
      }
    }
  }

  static constexpr int32_t kMany = 40;  // more candidates than are listed by pieces

  std::mt19937_64 random_{11};
  testing::TestFolder folder_;
  std::vector<float> bias_, hidden_;
};

// 1, 5 and 9 pieces of 1024 ids: of 4 ranks some have none, one, two or three.
INSTANTIATE_TEST_SUITE_P(Vocabularies, RanksOfVocabulary,
                         ::testing::Combine(::testing::Values(700, 5000, 8200),
                                            ::testing::Values(kFloat32Format, kInt8Format)),
                         [](const auto& test) {
                           return weight_format_name(std::get<1>(test.param)) + "_" +
                                  std::to_string(std::get<0>(test.param));
                         });

TEST_P(RanksOfVocabulary, ChooseWhatOneDoes) {
  std::vector<Step> steps(40);
  for (Step& step : steps) draw_step(step);
  const std::vector<SampleOutput> wanted = run(steps, 2, nullptr);
  for (const int num_ranks : {2, 4}) {
    for (const size_t outbox_bytes : {size_t{1000}, size_t{1} << 20}) {
      const auto group = testing::make_group(num_ranks, outbox_bytes);
      std::vector<SampleOutput> found;
      testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
        std::vector<SampleOutput> outputs = run(steps, 1 + ranks.rank() % 2, &ranks);
        if (ranks.rank() == 0) found = std::move(outputs);
      });
      for (size_t i = 0; i < steps.size(); ++i) {
        SCOPED_TRACE(::testing::Message() << num_ranks << " ranks, " << outbox_bytes << " bytes, step " << i);
        expect_same(found[i], wanted[i]);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(GatherColumns, FillsTheFirstRanksRowsInAnyPieces) {
  // Parts of 3, 0, 7 and 2 bytes of five rows.
  const std::vector<int64_t> borders = {0, 3, 3, 10, 12};
  const auto part_of = [&](int rank) {
    return IndexRange{borders[static_cast<size_t>(rank)], borders[static_cast<size_t>(rank) + 1]};
  };
  for (const size_t outbox_bytes : {size_t{1}, size_t{2}, size_t{5}, size_t{7}, size_t{16}, size_t{100}}) {
    const auto group = testing::make_group(4, outbox_bytes);
    testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
      std::vector<std::vector<std::byte>> rows(5, std::vector<std::byte>(12));
      std::vector<std::byte*> places;
      for (size_t i = 0; i < rows.size(); ++i) {
        places.push_back(rows[i].data());
        for (int64_t j = part_of(ranks.rank()).begin; j < part_of(ranks.rank()).end; ++j) {
          rows[i][static_cast<size_t>(j)] = static_cast<std::byte>(10 * i + static_cast<size_t>(j) + 1);
        }
      }
      EXPECT_TRUE(gather_columns(ranks, places, part_of).ok());
      for (size_t i = 0; ranks.rank() == 0 && i < rows.size(); ++i) {
        for (size_t j = 0; j < 12; ++j) EXPECT_EQ(rows[i][j], static_cast<std::byte>(10 * i + j + 1)) << i << " " << j;
      }
    });
  }
}

TEST(GatherColumns, AFailedGroupIsTold) {
  const auto group = testing::make_group(2);
  testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
    if (ranks.rank() == 1) return ranks.fail(absl::UnavailableError("gone"));
    std::byte row[2] = {};
    std::byte* const place = row;
    const Status status = gather_columns(ranks, std::span(&place, 1), [](int rank) {
      return IndexRange{rank, rank + 1};
    });
    EXPECT_EQ(error_message(status), "gone");
  });
}

}  // namespace
}  // namespace transept
