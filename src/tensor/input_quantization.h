// What a quantised checkpoint rounds the inputs of a product to, where its format says so (compressed-tensors'
// input_activations). Not a choice of this program: numbers of the product are those of the file's definition. Values
// and pure functions: thread-safe. Source: compressed_tensors 0.20, quantization/lifecycle/forward_helpers.py
// (_quantize_dequantize), quantization/utils/helpers.py (calculate_qparams).
//
// Of an input x: q = round((x / scale) + zero), nearest even, within [-2^(bits-1), 2^(bits-1) - 1], or float8 e4m3
// within 448; the product sees (q - zero) scale. All in float32.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace transept {

struct InputQuantization {
  enum class Type : uint8_t { kNone, kInteger, kFloat8 };

  Type type = Type::kNone;
  int32_t bits = 8;          // kInteger: 2 to 8
  bool is_symmetric = true;  // zeros are 0. false: kInteger alone
  // > 0: of all rows. 0: found from each row alone, symmetric: max |x| / 127.5 (kFloat8: 448); else (max - min) / 255,
  // where 0 counts as an entry.
  float scale = 0;
  int32_t zero = 0;   // beside a `scale`
  int32_t group = 0;  // > 0: so many neighbouring inputs count as a row of their own; without a `scale`

  bool rounds() const { return type != Type::kNone; }
  bool is_static() const { return scale > 0; }

  friend bool operator==(const InputQuantization&, const InputQuantization&) = default;
};

// "int8-token", "int8-token-zeros", "int8-g128", "float8-tensor-0.0125", "int8-tensor-0.5-zero-3"; "" without any. One
// word: packed folders have it.
std::string input_quantization_name(const InputQuantization& inputs);
// The inverse, of a name that rounds. Unset: no such name.
std::optional<InputQuantization> parse_input_quantization(std::string_view name);

}  // namespace transept
