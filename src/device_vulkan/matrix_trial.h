// Whether a model's products are made by a device's matrix units: found out at start, over the model's own products.
// Two questions for float16 (with bfloat16) and for int8 weights: whether a row's bits stay what they are whatever rows
// are beside it, and which form is faster. Used by the thread that has the timeline.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "device_vulkan/record_int8.h"
#include "device_vulkan/record_ops.h"
#include "device_vulkan/vulkan_timeline.h"
#include "ops/packed_matrix.h"

namespace transept {

// --device-matrices.
enum class MatrixChoice : uint8_t {
  kAuto,  // where they keep rows apart and are faster
  kOn,    // where they keep rows apart; else the start ends
  kOff
};

struct MatrixOptions {
  MatrixChoice choice = MatrixChoice::kAuto;
  // --device-arithmetic float16: inputs are rounded to it. Else they are two float16, which hold 22 bits of them.
  bool rounds_inputs = false;

  // For tests. The clock; and what rows of a product have given, which a test changes. Null: neither.
  std::function<double()> now = nullptr;
  std::function<void(uint32_t rows, std::span<float> y)> on_rows = nullptr;
};

// What products are made by. half_rows, int8_rows: rows of a tile; 0: shader cores multiply.
struct MatrixForms {
  uint32_t half_rows = 0, int8_rows = 0;
  bool rounds_inputs = false;

  bool operator==(const MatrixForms&) const = default;
};

// Outputs and inputs of a matrix that a model multiplies with, kept as float16, bfloat16 or int8.
struct ModelProduct {
  WeightFormat weights = kFloat16Format;
  InputRounding inputs = InputRounding::kUsual;
  int64_t n = 0, k = 0;

  bool is_int8() const { return weights == kInt8Format; }
  friend bool operator<(const ModelProduct& a, const ModelProduct& b) {
    const auto order = [](const ModelProduct& p) {
      return std::tuple(p.weights.layout, p.weights.bits, p.inputs, p.n, p.k);
    };
    return order(a) < order(b);
  }
};
using ModelProducts = std::set<ModelProduct>;

// Returns the forms, and appends what was found to the report, a sentence a kind of weights. A kind that the device has
// no tile for, or the model no product of, is left out. Errors: kFailedPrecondition, the choice is kOn and a kind's
// rows are not kept apart, or rounds_inputs and no product would; those of the timeline.
StatusOr<MatrixForms> try_matrices(VulkanTimeline& timeline, const ModelProducts& products,
                                   const MatrixOptions& options, std::vector<std::string>& report);

// The power of two by which bfloat16 numbers are multiplied to be float16 without loss, as the exponent's bits of a
// float32. Unset: float16 holds not all of them by one. `words`: two numbers in each, of the timeline. Errors: those of
// the timeline.
StatusOr<std::optional<uint32_t>> half_exponent(VulkanTimeline& timeline, const std::byte* words, uint64_t bytes);
// The same of what the device found of them (kernels/weight_range.comp).
std::optional<uint32_t> half_exponent(std::span<const DeviceWeightRange> found);

}  // namespace transept
