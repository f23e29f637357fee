// Weights of a product, packed once at load.
//
// Panels of kPanelColumns outputs (columns of y = x w^T), so that a product reads memory once, forward, at full width:
//   float32, float16   [k][kPanelColumns]
//   bfloat16           [k / 2][kPanelColumns][2], k padded with zeros to a multiple of kBFloat16Depth
//   int8               [k / 4][kPanelColumns][4], k padded with zeros to a multiple of kInt8Depth
// Outputs past n in the last panel are zero. 16-bit types are widened and arithmetic is float32, unless a bfloat16
// format says otherwise. 16 groups of 16 columns of the last two are one tile of AMX.
//
// int8 is symmetric with one scale an output: w = q * scale, q in [-127, 127], scale = max |w| / 127. Inputs are
// quantised by the product itself, one scale a row (ops/gemm.h).
//
// The layout is the same at every instruction level, and it is what `transept pack` writes: a change of it raises
// kPackedLayout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "tensor/arena.h"
#include "tensor/dtype.h"

namespace transept {

constexpr int64_t kPackedLayout = 1;
constexpr int64_t kPanelColumns = 32;
constexpr int64_t kInt8Depth = 64;
constexpr int64_t kBFloat16Depth = 32;
// Of int8: sums of 255 * 127 * k must fit an int32.
constexpr int64_t kMaxInt8Inputs = 65536;

struct WeightFormat {
  DType storage = DType::kFloat32;  // kFloat32, kBFloat16, kFloat16 or kInt8
  // int8 only: rows of x in two times 8 bits instead of 8. Twice the arithmetic, the same bytes.
  bool wide_inputs = false;
  // Of wide inputs: only in rows that lose too much otherwise (ops/gemm.h says which).
  bool only_outliers = false;
  // bfloat16 only: where the level has tiles for it (AMX), rows of x are rounded to bfloat16 and multiplied in it, with
  // float32 sums; elsewhere weights are widened. Used where bfloat16 arithmetic is asked for; other results stay
  // float32's.
  bool bfloat16_inputs = false;

  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};

// Bytes of a matrix that lie somewhere, in the layout above; scales and sums are int8's, and empty otherwise.
struct PackedBytes {
  std::span<const std::byte> panels;
  std::span<const float> scales;  // num_panels * kPanelColumns
  std::span<const int32_t> sums;  // of each output's q, as many
};

// The panels' shape: [panels, k, kPanelColumns], or [panels, depth / g, kPanelColumns, g] where g inputs lie together.
// REQUIRES: n and k are not negative.
std::vector<int64_t> panels_shape(int64_t n, int64_t k, DType storage);

class PackedMatrix final {
 public:
  // Memory for n outputs of k inputs each, zeroed; of a pool, or (null) its own. Rows are then set, each once, from any
  // thread.
  PackedMatrix(int64_t n, int64_t k, WeightFormat format = {}, std::shared_ptr<PagePool> pool = nullptr);

  // A matrix that is packed already, in bytes that outlive this one, or in a pool, which it keeps then. Errors: n, k
  // and the format do not make this many bytes, or cannot be; panels are not aligned to Arena::kAlignment; or sums are
  // further from 0 than any that k weights have. Other values are taken as they are: wrong ones make wrong products.
  static StatusOr<PackedMatrix> view(int64_t n, int64_t k, WeightFormat format, const PackedBytes& bytes,
                                     std::shared_ptr<PagePool> pool = nullptr);

  PackedMatrix(PackedMatrix&&) = default;
  PackedMatrix& operator=(PackedMatrix&&) = default;

  // Outputs [row, row + num_rows), rounded to the storage. weights: [num_rows, k]. REQUIRES: not a view.
  void set_rows(int64_t row, int64_t num_rows, std::span<const float> weights);
  void set_row(int64_t row, std::span<const float> weights) { set_rows(row, 1, weights); }
  // Outputs [0, rows.size()) become outputs `rows` of another matrix of the same k and format, bit for bit; what the
  // others are does not change. May be done again and again. REQUIRES: not a view.
  void copy_rows(const PackedMatrix& from, std::span<const int32_t> rows);
  // Reads output `row` back, as the product sees it. out: [k].
  void get_row(int64_t row, float* out) const;

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  // k with its padding.
  int64_t depth() const { return depth_; }
  const WeightFormat& format() const { return format_; }
  int64_t num_panels() const { return num_panels_; }
  const std::byte* panels() const { return views_.panels.data(); }
  // int8: [num_panels * kPanelColumns] scales, and the sum of each output's q. Otherwise null.
  const float* scales() const { return views_.scales.data(); }
  const int32_t* sums() const { return views_.sums.data(); }
  size_t bytes() const { return views_.panels.size() + views_.scales.size_bytes() + views_.sums.size_bytes(); }
  bool is_view() const { return pool_ == nullptr; }
  // Valid as long as the pool, or what is viewed.
  const PackedBytes& views() const { return views_; }

 private:
  PackedMatrix(int64_t n, int64_t k, WeightFormat format, const PackedBytes& bytes);

  // kGroup inputs of an output are written side by side; then come the next output's.
  template <int64_t kGroup, typename T>
  void scatter(int64_t row, int64_t num_rows, const T* rounded, int64_t row_step);
  void quantize_row(int64_t row, const float* weights, int8_t* q);
  // T: as many bytes as inputs of an output that lie side by side.
  template <typename T>
  void copy_columns(const PackedMatrix& from, std::span<const int32_t> rows);

  // Where output `row`'s first weight lies, in weights from the beginning.
  int64_t column_place(int64_t row) const;
  template <typename T>
  T* column(int64_t row) {
    return reinterpret_cast<T*>(data_) + column_place(row);
  }
  template <typename T>
  const T* column(int64_t row) const {
    return reinterpret_cast<const T*>(panels()) + column_place(row);
  }

  int64_t n_, k_, depth_, num_panels_;
  WeightFormat format_;
  PackedBytes views_;
  // Null in a view; otherwise what views_ are of, to be written.
  std::shared_ptr<PagePool> pool_;
  std::byte* data_ = nullptr;
  float* scales_ = nullptr;
  int32_t* sums_ = nullptr;
};

}  // namespace transept
