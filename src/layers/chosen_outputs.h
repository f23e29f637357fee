// Copies of chosen outputs of a linear layer: a request with a shortlist multiplies with these instead of the whole
// vocabulary. They come in parts of kPartColumns outputs each. Parts are made once and filled again and again, so
// requests come and go without allocation and without fragmentation.
//
// Owned by GroupShortlists (rank/group_shortlists.h), which allocates the parts; borrows the layer, and is the only
// class beside it that sees its panels: the processor's, in whose memory they are. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "layers/linear.h"
#include "ops/gemm.h"

namespace transept {

// The copies of one set of outputs. Filled and freed by the ChosenOutputs that it came from. Not copied: parts have one
// owner.
class OutputCopies final {
 public:
  OutputCopies() = default;
  OutputCopies(OutputCopies&&) = default;
  OutputCopies& operator=(OutputCopies&&) = default;

  bool empty() const { return parts_.empty(); }

 private:
  friend class ChosenOutputs;

  std::vector<GemmPart> parts_;
};

// y = x w^T + bias of a few rows, for the outputs of one set.
struct ChosenProduct {
  TensorView x;                           // [m, in_features]
  const OutputCopies* outputs = nullptr;  // of n outputs
  TensorView y;                           // [m, n], n > 0
};

class ChosenOutputs final {
 public:
  // Reserves address space for `num_parts` parts; a page counts when a part is first filled. Throws std::bad_alloc if
  // the system refuses.
  ChosenOutputs(const Linear& whole, int64_t num_parts);

  // Bytes of the matrix of one part.
  static uint64_t part_bytes(const Linear& whole);
  // Parts that `num_outputs` outputs need.
  static int64_t parts_for(int64_t num_outputs);

  // Allocates parts and fills them with the outputs `chosen`, in this order. Returns false, and allocates nothing, if
  // too few parts are free. Runs on `threads`. REQUIRES: `copies` is empty; outputs from 0 to out_features - 1.
  bool gather(ThreadPool& threads, std::span<const int32_t> chosen, OutputCopies& copies);
  // Frees the parts, and empties `copies`.
  void release(OutputCopies& copies);

  // Computes products with copied outputs of `whole`, with the bits of whole.forward(). Small products of different
  // rows fill all threads together. Step memory is a function of the products' number and rows. A dry run reads no
  // copies.
  static void forward(Context& context, const Linear& whole, std::span<const ChosenProduct> products);

  int64_t num_parts() const { return static_cast<int64_t>(matrices_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }

 private:
  const Linear& whole_;
  std::vector<PackedMatrix> matrices_;
  std::vector<float> biases_;  // [num_parts, kPartColumns]; empty: no bias
  std::vector<int32_t> free_;  // unused parts; the last is allocated next
};

}  // namespace transept
