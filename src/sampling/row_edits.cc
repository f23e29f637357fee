#include "sampling/row_edits.h"

#include <algorithm>

namespace transept {

bool RowEdits::forbids(int32_t token_id) const {
  if (forced_token >= 0) return token_id != forced_token;
  if (std::find(banned.begin(), banned.end(), token_id) != banned.end()) return true;
  return std::any_of(banned_ranges.begin(), banned_ranges.end(),
                     [&](const Range& range) { return token_id >= range.begin && token_id < range.end; });
}

void RowEdits::clear() {
  forced_token = -1;
  biases.clear();
  repetition_penalty = 1;
  seen.clear();
  presence_penalty = frequency_penalty = 0;
  generated.clear();
  banned.clear();
  banned_ranges.clear();
  timestamp_begin = -1;
  renormalize = false;
}

}  // namespace transept
