#include "attention/items.h"

#include <algorithm>

#include "base/checked_math.h"

namespace transept {
namespace {

// Sets the item's keys and cost, from ranges by row if there are any.
void add_up_keys(const AttentionMetadata& metadata, AttentionItem& item) {
  const int32_t num_keys = metadata.seq_lens[static_cast<size_t>(item.first_seq)];
  if (metadata.key_begin.empty()) {
    item.cost = int64_t{item.row_end - item.row_begin} * num_keys;
    return;
  }
  item.first_key = num_keys;
  for (auto r = static_cast<size_t>(item.row_begin); r < static_cast<size_t>(item.row_end); ++r) {
    const int32_t begin = metadata.key_begin[r], end = metadata.key_end[r];
    if (begin >= end) continue;
    item.first_key = std::min(item.first_key, begin);
    item.cost += end - begin;
  }
}

// Sequences [first, end) read the same keys. Calls add(item) for each run of their rows.
template <class Add>
void split_rows(const AttentionMetadata& metadata, int32_t first, int32_t end, int64_t item_rows, Add&& add) {
  const int32_t row_begin = metadata.query_start_loc[static_cast<size_t>(first)];
  const int64_t rows = metadata.query_start_loc[static_cast<size_t>(end)] - row_begin;
  const int64_t pieces = ceil_div(rows, item_rows);
  int32_t seq = first;
  for (int64_t i = 0; i < pieces; ++i) {
    const auto begin = static_cast<int32_t>(row_begin + rows * i / pieces);
    const auto next = static_cast<int32_t>(row_begin + rows * (i + 1) / pieces);
    while (begin >= metadata.query_start_loc[static_cast<size_t>(seq) + 1]) ++seq;
    AttentionItem item{.first_seq = seq, .row_begin = begin, .row_end = next};
    add_up_keys(metadata, item);
    add(item);
  }
}

template <class Add>
void for_each_item(const AttentionMetadata& metadata, int64_t item_rows, Add&& add) {
  if (metadata.query_start_loc.empty()) return;
  if (metadata.group_start_loc.empty()) {
    for (int32_t s = 0; s < metadata.num_seqs; ++s) split_rows(metadata, s, s + 1, item_rows, add);
    return;
  }
  for (size_t g = 0; g + 1 < metadata.group_start_loc.size(); ++g) {
    split_rows(metadata, metadata.group_start_loc[g], metadata.group_start_loc[g + 1], item_rows, add);
  }
}

}  // namespace

int64_t max_items(const AttentionMetadata& metadata, int64_t num_rows, int64_t item_rows) {
  return metadata.num_seqs + num_rows / item_rows;
}

std::span<AttentionItem> make_items(const AttentionMetadata& metadata, int64_t item_rows,
                                    std::span<AttentionItem> items) {
  size_t count = 0;
  for_each_item(metadata, item_rows, [&](const AttentionItem& item) { items[count++] = item; });
  items = items.first(count);
  std::sort(items.begin(), items.end(), [](const AttentionItem& a, const AttentionItem& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.row_begin < b.row_begin;
  });
  int64_t before = 0;
  for (AttentionItem& item : items) {
    item.before = before;
    before += item.cost;
  }
  return items;
}

AttentionRuns::AttentionRuns(std::span<const AttentionItem> items, int64_t kv_heads, int64_t least)
    : items_(items),
      kv_heads_(kv_heads),
      num_tasks_(static_cast<int64_t>(items.size()) * kv_heads),
      cost_(items.empty() ? 0 : (items.back().before + items.back().cost) * kv_heads),
      num_runs_(
          std::clamp<int64_t>(cost_ / std::max<int64_t>(least, 1), std::min<int64_t>(num_tasks_, 1), num_tasks_)) {}

int64_t AttentionRuns::begin(int64_t run) const {
  if (run == 0) return 0;
  if (run == num_runs_) return num_tasks_;
  const int64_t place = cost_ * run / num_runs_;
  const auto behind = std::upper_bound(items_.begin(), items_.end(), place, [&](int64_t cost, const AttentionItem& i) {
    return cost < i.before * kv_heads_;
  });
  const auto item = behind - 1;  // the last that begins at or before the place, so it costs something
  const int64_t head = ceil_div(place - item->before * kv_heads_, item->cost);
  return (item - items_.begin()) * kv_heads_ + head;
}

}  // namespace transept
