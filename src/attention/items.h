// The units that the cpu backend divides a step's attention into, and their distribution to threads. Values without
// threads of their own; const access is thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/forward_batch.h"

namespace transept {

// Rows that read the same keys: the unit of work, for each KV head.
struct AttentionItem {
  int32_t first_seq = 0;  // of row_begin; the sequences of later rows share its block table
  int32_t row_begin = 0;  // of q
  int32_t row_end = 0;
  int32_t first_key = 0;  // the first that any row sees
  int64_t cost = 0;       // keys that rows see, added up
  int64_t before = 0;     // sum of the costs of the items before this one
};

// Returns the most items that num_rows rows are divided into, for any distribution of rows to sequences.
int64_t max_items(const AttentionMetadata& metadata, int64_t num_rows, int64_t item_rows);

// Writes items of at most item_rows rows to `items` [max_items()], the most costly first, so that threads end together.
// Returns those written.
std::span<AttentionItem> make_items(const AttentionMetadata& metadata, int64_t item_rows,
                                    std::span<AttentionItem> items);

// The heads of all items, item by item, as runs of about the same cost: one head of a short sequence is too small a
// task for a thread. Task t is head t % kv_heads of item t / kv_heads.
class AttentionRuns final {
 public:
  // items: of make_items(), outlive this object. A run costs `least` on average, or more; a single run may cost less,
  // because a head is not divided. REQUIRES: kv_heads > 0.
  AttentionRuns(std::span<const AttentionItem> items, int64_t kv_heads, int64_t least);

  int64_t size() const { return num_runs_; }
  // Returns the first task of a run; for run == size(), the number of tasks.
  int64_t begin(int64_t run) const;

 private:
  std::span<const AttentionItem> items_;
  int64_t kv_heads_, num_tasks_, cost_, num_runs_;
};

}  // namespace transept
