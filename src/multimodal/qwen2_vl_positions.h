// Where the tokens of a Qwen2-VL prompt stand: on three axes, time, row and column. Text moves on all of them; the rows
// of a picture share a time, and stand at their row and column behind it; what follows begins behind the picture's
// longer side. Source: transformers, models/qwen2_vl/modeling_qwen2_vl.py, get_rope_index. A pure function:
// thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "core/decoder_layout.h"

namespace transept {

// A picture of rows * columns tokens from `offset` on.
struct PlacedPicture {
  int32_t offset = 0;
  int32_t rows = 0, columns = 0;

  int32_t num_tokens() const { return rows * columns; }
};

// Without pictures: the plain layout. REQUIRES: pictures stand one behind another within num_tokens.
DecoderLayout qwen2_vl_layout(int32_t num_tokens, std::span<const PlacedPicture> pictures);

}  // namespace transept
