// Copies of chosen outputs of an output layer: what a request with a shortlist multiplies with instead of the whole
// vocabulary. Parts of kPartColumns outputs each, made once and filled again and again, so that requests come and go
// without taking memory, and none is left in unusable pieces.
//
// Owned by engine/group_shortlists.h, which hands the parts out; borrows the layer. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "layers/lm_head.h"

namespace transept {

class ChosenOutputs final {
 public:
  // Address space for so many parts; a page of it counts when a part is first filled.
  ChosenOutputs(const LmHead& whole, int64_t num_parts);

  // Bytes of a part.
  static uint64_t part_bytes(const LmHead& whole);
  static int64_t parts_for(int64_t num_ids);

  // Fills parts with outputs `ids`, in this order. False: too few are free, and nothing was taken. REQUIRES: `parts` is
  // empty.
  bool gather(ThreadPool& threads, std::span<const int32_t> ids, std::vector<GemmPart>& parts);
  // Gives them back; `parts` is empty then.
  void release(std::vector<GemmPart>& parts);

  int64_t num_parts() const { return static_cast<int64_t>(matrices_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }

 private:
  const LmHead& whole_;
  std::vector<PackedMatrix> matrices_;
  std::vector<float> biases_;  // [num_parts, kPartColumns], or empty
  std::vector<int32_t> free_;  // the next one to take last
};

}  // namespace transept
