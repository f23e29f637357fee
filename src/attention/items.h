// What the cpu backend divides a step's attention into, and how that is handed to threads. Values; no thread of their
// own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/forward_batch.h"

namespace transept {

// Rows that read the same keys: the unit of work, once for each KV head.
struct AttentionItem {
  int32_t first_seq = 0;  // the sequence of row_begin; those of later rows share its block table
  int32_t row_begin = 0;  // of q
  int32_t row_end = 0;
  int64_t cost = 0;    // rows x keys
  int64_t before = 0;  // what the items in front of it cost together
};

// The most items that num_rows rows are divided into.
int64_t max_items(const AttentionMetadata& metadata, int64_t num_rows, int64_t item_rows);

// Items of at most item_rows rows to `items` [max_items()], the longest first, so that threads end together; returns
// those that there are.
std::span<AttentionItem> make_items(const AttentionMetadata& metadata, int64_t item_rows,
                                    std::span<AttentionItem> items);

// The heads of all items, item by item, as runs of about the same cost: one head of a short sequence is too little for
// threads to fetch one by one. Task t is head t % kv_heads of item t / kv_heads.
class AttentionRuns final {
 public:
  // A run costs `least` or more, unless it is one head; kv_heads > 0.
  AttentionRuns(std::span<const AttentionItem> items, int64_t kv_heads, int64_t least);

  int64_t size() const { return num_runs_; }
  // The first task of a run; run size(): the number of tasks.
  int64_t begin(int64_t run) const;

 private:
  std::span<const AttentionItem> items_;
  int64_t kv_heads_, num_tasks_, cost_, num_runs_;
};

}  // namespace transept
