// How the rows of a decoder stand to positions and cross keys, where it is not the plain way (a token's position is its
// index, and every row sees all cross keys). A value.
#pragma once

#include <cstdint>
#include <vector>

namespace transept {

// RowRange::kind of rows that experts compute, where layers have some (CogAgent's pictures; layers/row_runs.h).
inline constexpr uint8_t kExpertRows = 1;

// What the tokens from first_token on see and are, until the next range begins.
struct RowRange {
  int32_t first_token = 0;
  int32_t key_begin = 0, key_end = 0;  // cross keys [key_begin, key_end); equal: none
  uint8_t kind = 0;                    // ForwardBatch::row_kinds, which the family defines

  bool operator==(const RowRange&) const = default;
};

struct DecoderLayout {
  // [ModelSpec::position_axes, prompt tokens]; empty: a token's index, on every axis.
  std::vector<int32_t> prompt_positions;
  // A token behind the prompt stands at its index + this, on every axis.
  int32_t position_delta = 0;
  // Ascending by first_token. Tokens before the first range see all cross keys, and are of kind 0.
  std::vector<RowRange> ranges;

  bool operator==(const DecoderLayout&) const = default;
};

}  // namespace transept
