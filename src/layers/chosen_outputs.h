// Copies of chosen outputs of an output layer: a request with a shortlist multiplies with these instead of the whole
// vocabulary. They come in parts of kPartColumns outputs each. Parts are made once and filled again and again, so
// requests come and go without allocation and without fragmentation.
//
// Owned by GroupShortlists (engine/group_shortlists.h), which allocates the parts; borrows the layer. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "layers/lm_head.h"

namespace transept {

class ChosenOutputs final {
 public:
  // Reserves address space for `num_parts` parts; a page counts when a part is first filled. Throws std::bad_alloc if
  // the system refuses.
  ChosenOutputs(const LmHead& whole, int64_t num_parts);

  // Bytes of the matrix of one part.
  static uint64_t part_bytes(const LmHead& whole);
  // Parts that `num_ids` outputs need.
  static int64_t parts_for(int64_t num_ids);

  // Allocates parts and fills them with outputs `ids`, in this order. Returns false, and allocates nothing, if too few
  // parts are free. Runs on `threads`. REQUIRES: `parts` is empty; ids from 0 to vocab_size - 1.
  bool gather(ThreadPool& threads, std::span<const int32_t> ids, std::vector<GemmPart>& parts);
  // Frees the parts, and empties `parts`.
  void release(std::vector<GemmPart>& parts);

  int64_t num_parts() const { return static_cast<int64_t>(matrices_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }

 private:
  const LmHead& whole_;
  std::vector<PackedMatrix> matrices_;
  std::vector<float> biases_;  // [num_parts, kPartColumns]; empty: no bias
  std::vector<int32_t> free_;  // unused parts; the last is allocated next
};

}  // namespace transept
