// How the weights of a matrix are stored, in a checkpoint or in memory, and what a product does with its inputs. Values
// and pure functions: thread-safe.
//
// Numbers: float32, float16, bfloat16; files also have float8 and float4 with scales, whatever their tables of values.
// Codes: integers with scales, weight = (code - zero) * scale in float32. float4 with a group is its table's: weight =
// table[code] * scale in float32.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace transept {

enum class WeightLayout : uint8_t {
  kFloat,   // IEEE 754, of 32 or 16 bits; in files also of 8 or 4 bits and with scales
  kBFloat,  // the upper 16 bits of a float32
  kCodes,
};

struct WeightFormat {
  WeightLayout layout = WeightLayout::kFloat;
  int32_t bits = 32;  // of a number or a code
  // kCodes: inputs of one output that share a scale; 0: all its inputs. float4: the same; 0: the file divides weights
  // otherwise.
  int32_t group = 0;
  bool has_zero = false;  // kCodes: every scale has a zero of its own; otherwise zeros are 0

  bool is_codes() const { return layout == WeightLayout::kCodes; }
  // Whether a file rounded weights to floats of fewer than 16 bits.
  bool is_small_float() const { return layout == WeightLayout::kFloat && bits < 16; }
  // Whether weights are 4 bits each, of integers or of a table, with a scale for each group of inputs.
  bool is_nibbles() const { return bits == 4 && (is_codes() || group > 0); }

  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};

inline constexpr WeightFormat kFloat32Format = {};
inline constexpr WeightFormat kFloat16Format = {.bits = 16};
inline constexpr WeightFormat kBFloat16Format = {.layout = WeightLayout::kBFloat, .bits = 16};
inline constexpr WeightFormat kFloat8Format = {.bits = 8};
inline constexpr WeightFormat kFloat4Format = {.bits = 4};
inline constexpr WeightFormat kInt8Format = {.layout = WeightLayout::kCodes, .bits = 8};

constexpr WeightFormat int4_format(int32_t group, bool has_zero = false) {
  return {.layout = WeightLayout::kCodes, .bits = 4, .group = group, .has_zero = has_zero};
}
// What --quantization int4 rounds weights to. The group: decision 48.
inline constexpr WeightFormat kInt4Format = int4_format(32);
constexpr WeightFormat float4_format(int32_t group) { return {.bits = 4, .group = group}; }

// "float32", "float16", "bfloat16", "float8", "float4", "int8"; in groups and with zeros "int4-g128-zeros",
// "float4-g64". One word: the tag of a packed folder has it (weights/pack_tag.h).
std::string weight_format_name(const WeightFormat& format);
// The inverse. Unset: no such name; more than 8 bits a code.
std::optional<WeightFormat> parse_weight_format(std::string_view name);

// What a product rounds its inputs to.
enum class InputRounding : uint8_t {
  kUsual,  // int8 weights: 8 bits, with one scale a row. Other weights: no rounding
  kWide,   // int8 weights: two times 8 bits. Twice the arithmetic, the same bytes of weights
  // int8 weights: kWide for the rows that lose too much by one rounding (ops/gemm.h says which), kUsual for the others.
  kOutliers,
  // bfloat16 weights: at a level with tiles for it (AMX), bfloat16, with float32 sums. Other levels widen the weights.
  // Set where the options ask for bfloat16 arithmetic: otherwise results are float32's.
  kBFloat16,
  // int4 weights: 8 bits, with a scale for each group of inputs. Set where the options ask for int4.
  kGroups,
};

// The weights of a packed matrix and the rounding of its product's inputs.
struct PackedFormat {
  WeightFormat weights = kFloat32Format;
  InputRounding inputs = InputRounding::kUsual;

  // Whether some rows of inputs may take two times 8 bits.
  bool has_wide_inputs() const { return inputs == InputRounding::kWide || inputs == InputRounding::kOutliers; }
  // Whether such weights are multiplied with inputs that are rounded so.
  bool is_consistent() const {
    if (inputs == InputRounding::kBFloat16) return weights == kBFloat16Format;
    if (inputs == InputRounding::kGroups) return weights.is_nibbles() && weights.is_codes();
    return !has_wide_inputs() || weights == kInt8Format;
  }

  friend bool operator==(const PackedFormat&, const PackedFormat&) = default;
};

}  // namespace transept
