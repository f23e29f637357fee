// A tensor of floats inside a checkpoint's file, and the conversion of its elements. Values and functions without
// state: thread-safe. A view borrows the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/weight_format.h"

namespace transept {

class MmapFile;

// The purpose of asking for a tensor.
enum class WeightUse : uint8_t {
  kRead,    // its values, now or in every step
  kPacked,  // to be packed: not read afterwards
};

// A tensor inside a file. Data is little-endian and may be unaligned for its type: read it with the helpers below.
struct WeightView {
  std::string name;  // as the file spells it
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  const MmapFile* file = nullptr;  // owner of the bytes of `data`; null: other memory

  int64_t num_elements() const;
};

// Widens out.size() elements from element `begin` on to float32 (float32, bfloat16, float16). REQUIRES: in range.
void widen_to_float(const WeightView& weight, int64_t begin, std::span<float> out);

// The same, read from the file and not from its mapping, so that no page of it counts for this process: for tables of
// which a step needs a few rows. REQUIRES: weight.file != nullptr.
void read_to_float(const WeightView& weight, int64_t begin, std::span<float> out);

// Call when elements [begin, begin + count) were packed into memory of their own. Their pages of the file leave this
// process's memory until they are read again.
void release_pages(const WeightView& weight, int64_t begin, int64_t count);

// Widens out.size() unaligned elements at `in`; `in` may be the last bytes of `out`.
void widen_bytes(DType dtype, const std::byte* in, std::span<float> out);

// How a tensor of such elements stores weights. REQUIRES: float32, bfloat16 or float16.
WeightFormat weights_of(DType dtype);

// The whole tensor as float32.
std::vector<float> to_floats(const WeightView& weight);

}  // namespace transept
