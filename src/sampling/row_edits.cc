#include "sampling/row_edits.h"

namespace transept {

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
