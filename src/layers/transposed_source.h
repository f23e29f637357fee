// A matrix that the checkpoint stores as [inputs, outputs]: transformers' Conv1D, which GPT-2 is made of. Owns the
// stored matrix. Immutable: thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "weights/matrix_source.h"

namespace transept {

class TransposedSource final : public MatrixSource {
 public:
  // by_input: n() inputs of k() outputs each.
  explicit TransposedSource(std::unique_ptr<MatrixSource> by_input)
      : MatrixSource(by_input->k(), by_input->n(), by_input->format()), by_input_(std::move(by_input)) {}

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override {
    const IndexRange rows{begin, begin + count};
    const int64_t width = columns.size();
    std::vector<float> outputs(static_cast<size_t>(count));
    for (int64_t j = 0; j < width; ++j) {
      by_input_->read_rows(columns.begin + j, 1, rows, outputs);
      for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i * width + j)] = outputs[static_cast<size_t>(i)];
    }
  }

  // A stored row has a number of every output: all are read until the last output is.
  void release_rows(int64_t begin, int64_t count) const override {
    if (begin + count == n()) by_input_->release_rows(0, by_input_->n());
  }

  // Neighbours in the file: whole lines of the cache.
  int64_t rows_at_once() const override { return 64; }

  // Unless the stored matrix is itself turned in its file.
  bool is_by_input() const override { return !by_input_->is_by_input(); }
  void read_inputs(int64_t begin, int64_t count, IndexRange rows, std::span<float> out) const override {
    by_input_->read_rows(begin, count, rows, out);
  }
  void release_inputs(int64_t begin, int64_t count) const override { by_input_->release_rows(begin, count); }

 private:
  std::unique_ptr<MatrixSource> by_input_;
};

}  // namespace transept
