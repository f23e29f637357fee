// The output layer: from hidden rows to logits over the vocabulary. Often tied to the token embedding. Ranks have whole
// pieces of the vocabulary each, and compute the logits of their own ids alone. Immutable after loading, so
// thread-safe; owned by the model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "layers/chosen_outputs.h"
#include "layers/linear.h"

namespace transept {

class LmHead final {
 public:
  // `weight`: [vocab_size, dim] in the checkpoint (if tied, the embedding's name). `bias`: [vocab_size], added to the
  // logits; or empty. Errors: those of Linear::load.
  static StatusOr<LmHead> load(WeightMap& weights, const std::string& weight, int64_t vocab_size, int64_t dim,
                               std::vector<float> bias, const PackOptions& packing);

  // hidden: [rows, dim], out: [rows, vocab_size] float32, of which the columns of ids() are written.
  void logits(Context& context, const TensorView& hidden, const TensorView& out) const;
  // The same for few rows, in pieces of kPieceColumns ids, whatever the rows and threads: the thread that has just
  // computed a piece calls `then` with the logits of its ids, of all rows. out: [rows, vocab_size], of which the
  // columns of ids() are written; or [num_threads * rows, kPieceColumns] if no piece is needed later (ops/gemm.h).
  void logits_by_ids(Context& context, const TensorView& hidden, const TensorView& out,
                     FunctionRef<void(const ColumnPiece&)> then) const;

  // Logits of chosen ids, whose outputs were copied: see ChosenOutputs::forward. The same bits as logits(). REQUIRES:
  // one rank.
  void chosen_logits(Context& context, std::span<const ChosenProduct> products) const;

  const Linear& linear() const { return linear_; }  // of ids() alone
  int64_t vocab_size() const { return vocab_size_; }
  // The ids that a rank has, and this one: whole pieces of kPieceColumns; there may be none.
  IndexRange ids_of(int32_t rank) const { return share_of(vocab_size_, kPieceColumns, {rank, ranks_.count}); }
  IndexRange ids() const { return ids_of(ranks_.rank); }
  int32_t num_ranks() const { return ranks_.count; }
  int64_t dim() const { return linear_.in_features(); }

 private:
  LmHead(Linear linear, int64_t vocab_size, const Ranks& ranks)
      : linear_(std::move(linear)), vocab_size_(vocab_size), ranks_(ranks) {}

  Linear linear_;
  int64_t vocab_size_;
  Ranks ranks_;
};

}  // namespace transept
