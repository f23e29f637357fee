#include "speculation/accept.h"

#include "base/check.h"

namespace transept {

int32_t num_accepted(std::span<const int32_t> drafts, std::span<const RowSample> samples) {
  CHECK(samples.size() == drafts.size() + 1, samples.size(), " samples of ", drafts.size(), " drafts");
  int32_t count = 0;
  for (const int32_t draft : drafts) {
    if (samples[static_cast<size_t>(count)].token_id != draft) break;
    ++count;
  }
  return count;
}

}  // namespace transept
