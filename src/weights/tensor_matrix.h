// A tensor of floats as a matrix: its first axis are the outputs, the others together the inputs. Borrows the file.
#pragma once

#include "weights/matrix_source.h"
#include "weights/weight_view.h"

namespace transept {

class TensorMatrix final : public MatrixSource {
 public:
  // by_rows: single rows will be read, in any order and again and again. Large tensors are then read from the file and
  // not from its mapping: a page fault brings 16 pages of a mapping, and random rows soon all of it.
  TensorMatrix(WeightView tensor, bool by_rows);

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override;
  void release_rows(int64_t begin, int64_t count) const override;

 private:
  void read(int64_t element, std::span<float> out) const;

  WeightView tensor_;
  bool reads_file_;
};

}  // namespace transept
