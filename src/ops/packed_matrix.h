// Weights of a product, packed once at load.
//
// A panel holds kPanelColumns outputs (columns of y = x w^T), so that a product reads memory once, forward, at full
// width:
//   float32, float16   [k][kPanelColumns]
//   bfloat16           [k / 2][kPanelColumns][2], k padded with zeros to a multiple of kBFloat16Depth
//   int8               [k / 4][kPanelColumns][4], k padded with zeros to a multiple of kInt8Depth
//   int4, float4       codes, scales and zeros of groups: ops/nibble_panels.h
// Outputs past n in the last panel are zero. 16-bit types are widened and arithmetic is float32, unless the format's
// inputs are rounded to bfloat16. In bfloat16 and int8, 16 groups of 16 columns are one tile of AMX.
//
// int8 is symmetric with one scale an output: w = q * scale. Weights that are rounded here have q in [-127, 127] and
// scale = max |w| / 127; codes of a checkpoint are taken as they are, -128 too. The product quantises its inputs
// itself, with one scale a row (ops/gemm.h). int4 and float4 are a checkpoint's codes, zeros and scales as they are, or
// int4 without zeros that is rounded here, group by group.
//
// The layout is the same at every instruction level, and `transept pack` writes it: a change of the layout raises
// kPackedLayout. Layout 1 is that of 2 without int4 and float4.
//
// A layer owns its matrix. Reading is thread-safe; rows may be set from several threads, each row by one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "ops/nibble_panels.h"
#include "tensor/arena.h"
#include "tensor/dtype.h"
#include "tensor/weight_format.h"

namespace transept {

constexpr int64_t kPackedLayout = 2;
constexpr int64_t kPanelColumns = 32;
constexpr int64_t kInt8Depth = 64;
constexpr int64_t kBFloat16Depth = 32;
// Limit of k for int8: sums of 255 * 127 * k must fit an int32.
constexpr int64_t kMaxInt8Inputs = 65536;

// The bytes of a matrix, in the layout above. Scales and sums belong to int8 and are empty otherwise.
struct PackedBytes {
  std::span<const std::byte> panels;
  std::span<const float> scales;  // num_panels * kPanelColumns
  std::span<const int32_t> sums;  // of each output's q; num_panels * kPanelColumns
};

// Whether there are panels of this format: kFloat32Format, kFloat16Format, kBFloat16Format, kInt8Format, and formats of
// nibbles whose groups are multiples of 32 inputs.
bool has_panels(const WeightFormat& weights);
// Whether such panels hold k inputs. REQUIRES: has_panels(weights).
bool holds_inputs(const WeightFormat& weights, int64_t k);

// The panels as a tensor. Shape: [panels, k, kPanelColumns], or [panels, depth / g, kPanelColumns, g] where g inputs of
// an output are neighbours; nibbles, without groups of inputs: [bytes]. REQUIRES: has_panels(weights); n and k are not
// negative.
DType panels_dtype(const WeightFormat& weights);
std::vector<int64_t> panels_shape(int64_t n, int64_t k, const WeightFormat& weights);

// Rounds the weights of one output to int8: codes [weights.size()], and the scale, which is returned. An infinite or
// NaN weight gives scale NaN.
float round_to_int8(std::span<const float> weights, std::span<int8_t> codes);

// What nibbles of a matrix mean beside its scales. Copied.
struct NibbleMeanings {
  std::span<const float> table;           // [16]; of float4 alone it counts
  std::span<const int32_t> input_groups;  // [k], the group of each input; empty: in order
  int64_t num_groups = 0;                 // with input_groups, which are below it

  friend bool operator==(const NibbleMeanings& a, const NibbleMeanings& b);
};

class PackedMatrix final {
 public:
  // Allocates zeroed memory for n outputs of k inputs each, from `pool` or (null) from a pool of its own. The caller
  // then sets each row once, from any thread. REQUIRES: n and k are not negative, their bytes fit an int64; int8: k <=
  // kMaxInt8Inputs; has_panels(format.weights); format.is_consistent(). Nibbles: k is a multiple of kNibbleInputs, and
  // without input_groups nibbles_hold(); those whose inputs are rounded have no input_groups.
  PackedMatrix(int64_t n, int64_t k, PackedFormat format = {}, std::shared_ptr<PagePool> pool = nullptr,
               const NibbleMeanings& nibbles = {});

  // Returns a read-only matrix over packed bytes. The bytes outlive it, or lie in `pool`, which it keeps.
  // kInvalidArgument: n or k is negative or too large; there are no panels of the format, or none of so many inputs;
  // the byte counts do not match; panels are not aligned to Arena::kAlignment; a sum is further from 0 than 128 k; an
  // input's group is none. Nibbles have groups of inputs if their bytes are as many as these need.
  // Other values are not checked: wrong ones make wrong products.
  static StatusOr<PackedMatrix> view(int64_t n, int64_t k, PackedFormat format, const PackedBytes& bytes,
                                     std::shared_ptr<PagePool> pool = nullptr);

  PackedMatrix(PackedMatrix&&) = default;
  PackedMatrix& operator=(PackedMatrix&&) = default;

  // Returns the same matrix in this memory, read-only: itself where that is the host's, else a copy.
  PackedMatrix placed(DeviceMemory& memory) &&;
  // Returns the same matrix at the addresses of another view of its memory. The bytes outlive it.
  PackedMatrix seen_at(const PackedBytes& bytes) const;

  // Sets outputs [row, row + num_rows), rounded to the format (int8: round_to_int8; int4: round_to_int4 by groups).
  // weights: [num_rows, k]. REQUIRES: not a view; no zeros, table or input groups.
  void set_rows(int64_t row, int64_t num_rows, std::span<const float> weights);
  void set_row(int64_t row, std::span<const float> weights) { set_rows(row, 1, weights); }
  // Sets inputs [input, input + num_inputs) of outputs [row, row + num_rows), rounded as set_rows() rounds them.
  // weights: [num_inputs, num_rows]. Threads may set different inputs of an output. REQUIRES: a format of floats, or
  // int8 and all inputs; not a view.
  void set_inputs(int64_t row, int64_t num_rows, int64_t input, int64_t num_inputs, std::span<const float> weights);
  // Sets outputs [row, row + num_rows) to int8 codes [num_rows, k] with their scales [num_rows], as they are. REQUIRES:
  // kInt8Format; not a view.
  void set_codes(int64_t row, int64_t num_rows, std::span<const int8_t> codes, std::span<const float> scales);
  // Sets one output of nibbles: codes [k] of [-8, 7], scales [groups], zeros [groups] or empty. REQUIRES: a format of
  // nibbles; not a view.
  void set_nibbles(int64_t row, std::span<const int8_t> codes, std::span<const float> scales,
                   std::span<const int16_t> zeros);
  // Copies outputs `rows` of `from`, a matrix of the same k and format, to outputs [0, rows.size()), bit for bit. Other
  // outputs do not change. May be called repeatedly. REQUIRES: not a view; no concurrent reader.
  void copy_rows(const PackedMatrix& from, std::span<const int32_t> rows);
  // Writes output `row`, as the product sees it, to `out` [k] as float32.
  void get_row(int64_t row, float* out) const;
  // Writes the codes of output `row` to `out` [k]. REQUIRES: kInt8Format or nibbles.
  void get_codes(int64_t row, int8_t* out) const;
  // Writes the scales of an output of nibbles, and its zeros if it has any. REQUIRES: spans of that size.
  void get_scales(int64_t row, std::span<float> scales, std::span<int16_t> zeros) const;

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  // k with its padding.
  int64_t depth() const { return depth_; }
  const PackedFormat& format() const { return format_; }
  int64_t num_panels() const { return num_panels_; }
  const std::byte* panels() const { return views_.panels.data(); }
  int64_t panel_bytes() const;
  bool is_nibbles() const { return format_.weights.is_nibbles(); }
  // How nibbles lie; and what they mean, valid as long as the bytes. The table is integer_table() without one.
  const NibblePanels& nibbles() const { return nibbles_; }
  NibbleMeanings nibble_meanings() const;
  // int8: [num_panels * kPanelColumns] scales, and as many sums of an output's q. Null otherwise.
  const float* scales() const { return views_.scales.data(); }
  const int32_t* sums() const { return views_.sums.data(); }
  size_t bytes() const { return views_.panels.size() + views_.scales.size_bytes() + views_.sums.size_bytes(); }
  // Whether another owner (a mapped file) holds the bytes. False for a view that keeps its pool.
  bool is_view() const { return keeper_ == nullptr; }
  // Valid as long as the pool or the viewed bytes.
  const PackedBytes& views() const { return views_; }

 private:
  PackedMatrix(int64_t n, int64_t k, PackedFormat format, const PackedBytes& bytes);

  void check_writable(int64_t row, int64_t num_rows) const;
  // Writes kGroup inputs of an output as neighbours; the next output's follow.
  template <int64_t kGroup, typename T>
  void scatter(int64_t row, int64_t num_rows, const T* rounded, int64_t row_step);
  void set_int8_inputs(int64_t row, int64_t num_rows, std::span<const float> weights);
  template <int64_t kGroup, typename T, typename Convert>
  void scatter_inputs(int64_t row, int64_t num_rows, int64_t input, std::span<const float> weights, Convert convert);
  // codes: [num_rows, depth], whose padding is 0.
  void put_codes(int64_t row, int64_t num_rows, const int8_t* codes, const float* scales);
  // T has the size of one group: the inputs of an output that are neighbours.
  template <typename T>
  void copy_columns(const PackedMatrix& from, std::span<const int32_t> rows);

  // Offset of output `row`'s first weight from the beginning, in weights.
  int64_t column_place(int64_t row) const;
  template <typename T>
  T* column(int64_t row) {
    return reinterpret_cast<T*>(data_) + column_place(row);
  }
  template <typename T>
  const T* column(int64_t row) const {
    return reinterpret_cast<const T*>(panels()) + column_place(row);
  }

  std::byte* nibble_panel(int64_t row) { return data_ + row / kPanelColumns * nibbles_.panel_bytes(); }
  const std::byte* nibble_panel(int64_t row) const { return panels() + row / kPanelColumns * nibbles_.panel_bytes(); }
  void round_to_nibbles(int64_t row, std::span<const float> weights);
  void get_nibble_row(int64_t row, float* out) const;

  int64_t n_, k_, depth_, num_panels_;
  PackedFormat format_;
  NibblePanels nibbles_ = {};
  PackedBytes views_;
  // Keeps the memory of views_; null if another owner does.
  std::shared_ptr<const void> keeper_;
  // The same bytes as views_, for writing. Null in a view.
  std::byte* data_ = nullptr;
  float* scales_ = nullptr;
  int32_t* sums_ = nullptr;
};

}  // namespace transept
