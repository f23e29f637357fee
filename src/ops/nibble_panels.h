// Where the parts of a matrix of 4-bit codes lie in its bytes (ops/packed_matrix.h):
//   panels   num_panels times
//              codes   [k / 8][kPanelColumns][4 bytes]: of eight inputs of an output, input j (0 to 3) is in the lower
//                      half of byte j and input j + 4 in the upper half, 8 more than the code. One vector of bytes so
//                      gives two factors of a product of bytes, and any input by a shift.
//              scales  [num_groups][kPanelColumns] float32
//              zeros   [num_groups][kPanelColumns] int16, if the format has them
//   table    [16] float32: what a float4 code means, the first of code -8
//   groups   [k] int32: the group of each input, where they are no runs of `group` inputs (GPTQ's act-order; a rank's
//            part that begins inside a group)
// Values and pure functions: thread-safe; a byte belongs to one output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/weight_format.h"

namespace transept {

inline constexpr int64_t kNibbleInputs = 8;  // of an output, side by side
inline constexpr int32_t kNibbleOffset = 8;  // stored: code + 8
inline constexpr size_t kNibbleValues = 16;

struct NibblePanels {
  int64_t k = 0;
  int64_t group = 1;       // inputs of a group; without `has_input_groups` groups are runs of them
  int64_t num_groups = 0;  // of an output
  bool has_zero = false, has_table = false, has_input_groups = false;

  // Of a whole matrix whose inputs lie in order. REQUIRES: nibbles_hold(weights, k).
  static NibblePanels of(const WeightFormat& weights, int64_t k);

  int64_t panel_bytes() const;
  int64_t bytes(int64_t num_panels) const;
  int64_t table_place(int64_t num_panels) const { return num_panels * panel_bytes(); }
  int64_t input_groups_place(int64_t num_panels) const;
  // From the panel's beginning.
  int64_t scales_place() const;
  int64_t zeros_place() const;

  int64_t group_of(int64_t input, const int32_t* input_groups) const {
    return has_input_groups ? input_groups[input] : input / group;
  }
};

// Whether panels of this format hold k inputs: whole groups, a group being a multiple of 32 inputs.
bool nibbles_hold(const WeightFormat& weights, int64_t k);

// Output `column` of a panel.
void put_nibbles(const NibblePanels& of, std::byte* panel, int64_t column, std::span<const int8_t> codes);
void put_scales(const NibblePanels& of, std::byte* panel, int64_t column, std::span<const float> scales,
                std::span<const int16_t> zeros);
void get_nibbles(const NibblePanels& of, const std::byte* panel, int64_t column, int8_t* codes);
void get_scales(const NibblePanels& of, const std::byte* panel, int64_t column, std::span<float> scales,
                std::span<int16_t> zeros);
// Copies an output of one panel to one of another.
void copy_nibbles(const NibblePanels& of, const std::byte* from, int64_t from_column, std::byte* to, int64_t to_column);

// What the codes -8 to 7 mean without a table: themselves.
std::span<const float> integer_table();

// Rounds the weights of one group of one output to codes of [-8, 7], and returns the scale: of a few that put the
// weight of largest magnitude at or past a border, the one with the least squared error. An infinite or NaN weight
// gives scale NaN.
float round_to_int4(std::span<const float> weights, std::span<int8_t> codes);

}  // namespace transept
