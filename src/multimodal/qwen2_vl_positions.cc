#include "multimodal/qwen2_vl_positions.h"

#include <algorithm>

#include "base/check.h"

namespace transept {

DecoderLayout qwen2_vl_layout(int32_t num_tokens, std::span<const PlacedPicture> pictures) {
  DecoderLayout layout;
  if (pictures.empty()) return layout;
  const auto count = static_cast<size_t>(num_tokens);
  layout.prompt_positions.resize(3 * count);
  int32_t token = 0, position = 0;
  const auto place = [&](int32_t time, int32_t row, int32_t column) {
    CHECK(token < num_tokens, "a picture beyond its prompt");
    const auto at = static_cast<size_t>(token++);
    layout.prompt_positions[at] = time;
    layout.prompt_positions[count + at] = row;
    layout.prompt_positions[2 * count + at] = column;
  };
  const auto place_text = [&](int32_t end) {
    while (token < end) {
      place(position, position, position);
      ++position;
    }
  };
  for (const PlacedPicture& picture : pictures) {
    CHECK(picture.offset >= token, "pictures stand one behind another");
    place_text(picture.offset);
    for (int32_t row = 0; row < picture.rows; ++row) {
      for (int32_t column = 0; column < picture.columns; ++column) place(position, position + row, position + column);
    }
    position += std::max(picture.rows, picture.columns);
  }
  place_text(num_tokens);
  layout.position_delta = position - num_tokens;
  return layout;
}

}  // namespace transept
