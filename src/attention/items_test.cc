// Items and runs: every row of every head in exactly one run, runs of about the same cost.
#include "attention/items.h"

#include <gtest/gtest.h>

#include <numeric>

namespace transept {
namespace {

// One row each over so many keys.
std::vector<AttentionItem> items_of(const std::vector<int32_t>& seq_lens) {
  std::vector<int32_t> starts(seq_lens.size() + 1);
  std::iota(starts.begin(), starts.end(), 0);
  AttentionMetadata metadata;
  metadata.num_seqs = static_cast<int32_t>(seq_lens.size());
  metadata.query_start_loc = starts;
  metadata.seq_lens = seq_lens;
  std::vector<AttentionItem> items(static_cast<size_t>(max_items(metadata, metadata.num_seqs, 96)));
  items.resize(make_items(metadata, 96, items).size());
  return items;
}

TEST(AttentionRunsTest, RunsFollowEachOtherFromTheFirstTaskToTheLast) {
  for (const std::vector<int32_t>& lens : std::vector<std::vector<int32_t>>{
           {}, {0}, {0, 0}, {1}, {32, 32, 32}, {1000, 1, 2, 3}, {5, 0, 7, 0}, {64, 63, 62, 61, 60, 59, 58}}) {
    const std::vector<AttentionItem> items = items_of(lens);
    for (const int64_t heads : {1, 3, 8}) {
      for (const int64_t least : {0, 1, 40, 100, 1000, 1000000}) {
        const AttentionRuns runs(items, heads, least);
        const auto tasks = static_cast<int64_t>(items.size()) * heads;
        if (tasks == 0) {
          EXPECT_EQ(runs.size(), 0);
          continue;
        }
        ASSERT_GE(runs.size(), 1);
        ASSERT_LE(runs.size(), tasks);
        EXPECT_EQ(runs.begin(0), 0);
        EXPECT_EQ(runs.begin(runs.size()), tasks);
        for (int64_t i = 0; i < runs.size(); ++i) EXPECT_LE(runs.begin(i), runs.begin(i + 1));
      }
    }
  }
}

TEST(AttentionRunsTest, ALongSequenceIsDividedByHeadsWhileShortOnesGoTogether) {
  const std::vector<AttentionItem> items = items_of({10, 1000, 10, 10});
  const AttentionRuns runs(items, 4, 100);  // 4120 in all
  ASSERT_EQ(runs.size(), 16);
  int64_t most = 0;
  for (int64_t i = 0; i < runs.size(); ++i) {
    int64_t cost = 0;
    for (int64_t task = runs.begin(i); task < runs.begin(i + 1); ++task)
      cost += items[static_cast<size_t>(task / 4)].cost;
    most = std::max(most, cost);
  }
  EXPECT_EQ(most, 1000);                           // one head of the long sequence, never two
  EXPECT_EQ(runs.begin(16) - runs.begin(15), 12);  // all heads of the short ones together
}

TEST(AttentionItemsTest, TheLongestComesFirst) {
  const std::vector<AttentionItem> items = items_of({3, 9, 3, 5});
  std::vector<int32_t> rows;
  rows.reserve(items.size());
  for (const AttentionItem& item : items) rows.push_back(item.row_begin);
  EXPECT_EQ(rows, (std::vector<int32_t>{1, 3, 0, 2}));
  EXPECT_EQ(items[3].before, 17);
}

TEST(AttentionItemsTest, RangesByRowGiveTheCostAndTheFirstKey) {
  const std::vector<int32_t> starts = {0, 3, 4, 6}, lens = {100, 100, 40}, groups = {0, 2, 3};
  const std::vector<int32_t> begins = {70, 0, 30, 65, 40, 9}, ends = {80, 0, 30, 100, 40, 3};  // rows 1, 2, 4, 5: none
  AttentionMetadata metadata;
  metadata.num_seqs = 3;
  metadata.query_start_loc = starts;
  metadata.seq_lens = lens;
  metadata.group_start_loc = groups;
  metadata.key_begin = begins;
  metadata.key_end = ends;
  std::vector<AttentionItem> items(static_cast<size_t>(max_items(metadata, 6, 96)));
  const std::span<const AttentionItem> made = make_items(metadata, 96, items);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].row_end, 4);
  EXPECT_EQ(made[0].cost, 45);
  EXPECT_EQ(made[0].first_key, 65);
  EXPECT_EQ(made[1].cost, 0);
}

}  // namespace
}  // namespace transept
