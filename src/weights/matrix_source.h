// A weight matrix of a checkpoint: n outputs of k inputs each, in whatever form the file has them. Every source gives
// float32 numbers; one that stores codes with scales gives these too, so that a kernel for codes takes them without
// rounding them a second time.
//
// A file format is a class behind this interface (weights/matrix_reader.h). Owned by the layer that loads; borrows the
// WeightMap's files. Immutable: rows may be read from several threads. A source that was asked for with
// WeightUse::kRead allocates nothing while it is read, as steps read it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensor/weight_format.h"

namespace transept {

// [begin, end).
struct IndexRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }

  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

class CodedMatrix;

class MatrixSource {
 public:
  virtual ~MatrixSource() = default;

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  // How the file stores it.
  const WeightFormat& format() const { return format_; }

  // Writes inputs `columns` of outputs [begin, begin + count) to `out` [count, columns.size()]: exactly what the file
  // means. REQUIRES: ranges inside the matrix.
  virtual void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const = 0;

  // Call when outputs [begin, begin + count) were packed into memory of their own: what was mapped of them leaves this
  // process's memory until it is read again.
  virtual void release_rows(int64_t /*begin*/, int64_t /*count*/) const {}

  // How many neighbouring rows are read fastest together.
  virtual int64_t rows_at_once() const { return 1; }

  // Whether the file has the outputs of an input side by side, as panels have them (ops/packed_matrix.h):
  // read_inputs() takes them as they lie, where read_rows() turns them.
  virtual bool is_by_input() const { return false; }
  // Writes outputs `rows` of inputs [begin, begin + count) to `out` [count, rows.size()]: the numbers of read_rows().
  // REQUIRES: is_by_input(); ranges inside the matrix.
  virtual void read_inputs(int64_t begin, int64_t count, IndexRange rows, std::span<float> out) const;
  // As release_rows(), of inputs. REQUIRES: is_by_input().
  virtual void release_inputs(int64_t /*begin*/, int64_t /*count*/) const {}

  // Whether the file has it rounded to few bits: such a matrix is not rounded to other floats again.
  virtual bool is_quantized() const { return format_.is_codes() || format_.is_small_float(); }

  // This matrix as codes; null: it gives numbers alone.
  virtual const CodedMatrix* coded() const { return nullptr; }

 protected:
  MatrixSource(int64_t n, int64_t k, const WeightFormat& format) : n_(n), k_(k), format_(format) {}

 private:
  int64_t n_, k_;
  WeightFormat format_;
};

// A matrix of codes: weight = (code - zero) * scale, one rounding of float32. Scale and zero belong to a group of
// inputs of one output. The codes are signed, whatever the file's: those of b bits lie in [-2^(b-1), 2^(b-1)), and
// zeros beside them. float4 codes are places in a table: weight = table[code + 8] * scale, and there are no zeros.
//
// A format whose weights are anything else (a minimum instead of a zero) derives from MatrixSource.
class CodedMatrix : public MatrixSource {
 public:
  static constexpr int64_t kMaxGroups = 4096;  // of one output

  // Groups of an output. Input j belongs to group j / format().group, or to input_groups()[j] if the file says so
  // (GPTQ's g_idx, where inputs were quantised in another order than they lie).
  int64_t num_groups() const { return num_groups_; }
  std::span<const int32_t> input_groups() const { return input_groups_; }  // [k]; empty: in order
  int64_t group_of(int64_t input) const;
  // [16]; empty: codes mean themselves.
  std::span<const float> table() const { return table_; }

  // Writes the codes of inputs `columns` of output `row` to `codes` [columns.size()].
  virtual void read_codes(int64_t row, IndexRange columns, std::span<int8_t> codes) const = 0;
  // Writes the scale and the zero of each group of output `row`. scales: [num_groups()]; zeros: as many with
  // format().has_zero, else empty.
  virtual void read_scales(int64_t row, std::span<float> scales, std::span<int16_t> zeros) const = 0;

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const final;
  const CodedMatrix* coded() const final { return this; }

 protected:
  // input_groups: [k], or empty. REQUIRES: format.is_codes(), bits <= 8, or float4 in groups with a table; at most
  // kMaxGroups groups; input_groups inside them.
  CodedMatrix(int64_t n, int64_t k, const WeightFormat& format, std::vector<int32_t> input_groups = {},
              std::vector<float> table = {});

 private:
  int64_t num_groups_;
  std::vector<int32_t> input_groups_;
  std::vector<float> table_;
};

}  // namespace transept
