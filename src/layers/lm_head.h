// The output layer: from hidden rows to logits over the vocabulary. Often tied to the token embedding. Immutable after
// loading, so thread-safe; owned by the model.
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

  // hidden: [rows, dim], out: [rows, vocab_size] float32.
  void logits(Context& context, const TensorView& hidden, const TensorView& out) const;
  // The same for few rows, in pieces of kPieceColumns ids, whatever the rows and threads: the thread that has just
  // computed a piece calls `then` with the logits of its ids, of all rows. out: [rows, vocab_size]; or [num_threads *
  // rows, kPieceColumns] if no piece is needed later (ops/gemm.h).
  void logits_by_ids(Context& context, const TensorView& hidden, const TensorView& out,
                     FunctionRef<void(const ColumnPiece&)> then) const;

  // Logits of chosen ids, whose outputs were copied: see ChosenOutputs::forward. The same bits as logits().
  void chosen_logits(Context& context, std::span<const ChosenProduct> products) const;

  const Linear& linear() const { return linear_; }
  int64_t vocab_size() const { return linear_.out_features(); }
  int64_t dim() const { return linear_.in_features(); }

 private:
  explicit LmHead(Linear linear) : linear_(std::move(linear)) {}

  Linear linear_;
};

}  // namespace transept
