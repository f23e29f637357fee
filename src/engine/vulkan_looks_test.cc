// What a software Vulkan device finds in rows of scores gives the tokens that the processor chooses of the same scores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/sanitized_testing.h"
#include "engine/opened_vulkan_testing.h"
#include "ops/cpu_device.h"
#include "sampling/candidate_row.h"
#include "sampling/greedy_row.h"
#include "sampling/row_looks.h"
#include "sampling/select_row.h"

namespace transept {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

class VulkanLooks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "device_vulkan's tests have the device";
    if (opened().kind == nullptr) GTEST_SKIP() << "no software device: " << opened().why;
  }
  void TearDown() override {
    if (IsSkipped()) return;
    for (const std::string& problem : opened().take_problems()) ADD_FAILURE() << problem;
  }
  static testing::OpenedVulkan& opened() {
    static testing::OpenedVulkan opened;
    return opened;
  }

  int32_t draw(int32_t below) { return static_cast<int32_t>(rng_() % static_cast<uint32_t>(below)); }

  // Of `vocab` ids; some are past it.
  RowEdits random_edits(int32_t vocab, bool is_beams) {
    RowEdits edits;
    const auto id = [&] { return draw(vocab + 3); };
    if (draw(2) == 0) {
      for (int i = 0; i < 6; ++i) edits.biases.push_back({draw(4) == 0 ? 5 : id(), static_cast<float>(draw(9) - 4)});
    }
    std::vector<int32_t> ids(static_cast<size_t>(vocab));
    for (int32_t i = 0; i < vocab; ++i) ids[static_cast<size_t>(i)] = i;
    std::shuffle(ids.begin(), ids.end(), rng_);
    if (!is_beams && draw(2) == 0) {
      edits.repetition_penalty = 1.3f;
      edits.seen.assign(ids.begin(), ids.begin() + 9);
    }
    if (draw(2) == 0) {
      edits.presence_penalty = 0.5f, edits.frequency_penalty = 0.25f;
      for (size_t i = 0; i < 9; ++i) edits.generated.push_back({ids[i], 1 + draw(3)});
    }
    for (int i = draw(20); i > 0; --i) edits.banned.push_back(id());
    if (draw(3) == 0) edits.banned_ranges = {{id(), vocab + 9}, {0, draw(8)}};
    if (draw(25) == 0) edits.banned_ranges = {{0, std::numeric_limits<int32_t>::max()}};
    if (!is_beams && draw(3) == 0) edits.timestamp_begin = vocab - 20;
    if (!is_beams && draw(9) == 0) edits.forced_token = id();
    return edits;
  }

  // What the processor makes of what the device finds.
  SampleOutput look(const std::vector<float>& scores, int64_t vocab, std::span<const RowRequest> rows) {
    const auto num_rows = static_cast<int64_t>(rows.size());
    const std::unique_ptr<Device> device = opened().kind->make_device(threads_, detect_isa());
    DeviceMemory& memory = opened().kind->memory();
    Arena none(Arena::kAlignment);
    Context context{*device, none};
    int64_t most = 0;
    std::vector<uint32_t> edits{0, 0};
    std::vector<ScoreLook> looks;
    for (const RowRequest& row : rows) {
      EXPECT_TRUE(is_looked_at(row));
      looks.push_back(make_look(row, edits));
      most = std::max<int64_t>(most, row.num_candidates);
    }
    const auto view = [&](std::byte* raw, int64_t columns) {
      TensorView tensor;
      tensor.raw = raw, tensor.rank = 2, tensor.shape = {num_rows, columns, 0, 0}, tensor.stride = {columns, 1, 0, 0};
      return tensor;
    };
    const size_t bytes = scores.size() * sizeof(float);
    const DeviceBuffer there = memory.allocate(bytes, MemoryUse::kSteps);
    std::vector<uint32_t> found(static_cast<size_t>(num_rows * found_words(most)));
    const DeviceBuffer back = memory.allocate(found.size() * sizeof(uint32_t), MemoryUse::kSteps);
    memory.copy_in(there.data(), scores.data(), bytes);
    look_at_scores(context, view(there.data(), vocab), looks, edits, most, view(back.data(), found_words(most)));
    memory.copy_out(found.data(), back.data(), found.size() * sizeof(uint32_t));
    SampleOutput output;
    for (size_t i = 0; i < rows.size(); ++i) {
      RowSample sample;
      sample.top_begin = std::ssize(output.top);
      output.top.resize(output.top.size() + static_cast<size_t>(num_top_entries(rows[i], vocab)));
      const auto width = static_cast<size_t>(found_words(most));
      choose_of_found(rows[i], vocab, std::span(found).subspan(i * width, width), sample,
                      std::span(output.top).subspan(static_cast<size_t>(sample.top_begin)));
      output.rows.push_back(sample);
    }
    return output;
  }

  SampleOutput chosen(const std::vector<float>& scores, int64_t vocab, std::span<const RowRequest> rows) {
    CpuDevice device(threads_, detect_isa());
    Arena arena(Arena::kAlignment);
    const Context context{device, arena};
    SampleOutput output;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto first = scores.begin() + static_cast<int64_t>(i) * vocab;
      std::vector<float> own(first, first + vocab);
      RowSample sample;
      sample.top_begin = std::ssize(output.top);
      output.top.resize(output.top.size() + static_cast<size_t>(num_top_entries(rows[i], vocab)));
      CandidateList list;
      if (rows[i].num_candidates > 0) {
        const GreedyPiece piece = list_piece(context, rows[i], 0, own, list);
        choose_candidates(std::span(&piece, 1), std::span(&list, 1), 1, sample,
                          std::span(output.top).subspan(static_cast<size_t>(sample.top_begin)));
      } else {
        const GreedyPiece piece = look_at_piece(context, rows[i], 0, own);
        choose_by_pieces(rows[i], std::span(&piece, 1), sample);
      }
      output.rows.push_back(sample);
    }
    return output;
  }

  std::mt19937 rng_{1};
  ThreadPool threads_{1};
};

TEST_F(VulkanLooks, TokensAreTheProcessors) {
  for (int round = 0; round < 60; ++round) {
    const int32_t vocab = 40 + draw(700);
    constexpr size_t kRows = 12;
    std::vector<float> scores(kRows * static_cast<size_t>(vocab));
    for (float& score : scores) score = static_cast<float>(draw(4000) - 2000) / (round % 2 == 0 ? 256.0f : 900.0f);
    if (round % 5 == 0) scores[static_cast<size_t>(draw(vocab))] = std::nanf("");
    if (round % 7 == 0) scores[static_cast<size_t>(vocab) + static_cast<size_t>(draw(vocab))] = -kNever;
    if (round % 3 == 0) std::fill_n(scores.begin() + 2 * vocab, vocab, kNever);
    if (round % 3 == 1) scores[3 * static_cast<size_t>(vocab) + static_cast<size_t>(draw(vocab))] = kNever;
    std::vector<RowEdits> edits(kRows);
    std::vector<RowRequest> rows(kRows);
    for (size_t i = 0; i < kRows; ++i) {
      rows[i].hidden_row = static_cast<int32_t>(i);
      rows[i].num_candidates = draw(3) == 0 ? 1 + draw(12) : 0;
      edits[i] = random_edits(vocab, rows[i].num_candidates > 0);
      if (draw(4) != 0) rows[i].edits = &edits[i];
    }
    const SampleOutput there = look(scores, vocab, rows), here = chosen(scores, vocab, rows);
    ASSERT_EQ(there.top.size(), here.top.size());
    for (size_t i = 0; i < kRows; ++i) {
      SCOPED_TRACE(str_cat("round ", round, ", row ", i));
      const RowSample &a = there.rows[i], &b = here.rows[i];
      ASSERT_EQ(a.token_id, b.token_id);
      ASSERT_EQ(a.num_top, b.num_top);
      EXPECT_EQ(a.rank, b.rank);
      EXPECT_NEAR(a.logprob, b.logprob, 1e-5 * (1 + std::abs(b.logprob)));
      for (size_t j = 0; j < static_cast<size_t>(a.num_top); ++j) {
        const TokenLogprob& one = there.top[static_cast<size_t>(a.top_begin) + j];
        const TokenLogprob& other = here.top[static_cast<size_t>(b.top_begin) + j];
        EXPECT_EQ(one.token_id, other.token_id) << j;
        EXPECT_NEAR(one.logprob, other.logprob, 1e-5 * (1 + std::abs(other.logprob))) << j;
      }
    }
  }
}

}  // namespace
}  // namespace transept
