// Which drafts became tokens. Each row of a drafted sequence is sampled with its own random number, as if there were no
// drafts; a draft is kept exactly if it is the token that was chosen in its place. So answers, log-probabilities and
// ends are those without drafts for every seed: there is no rejection sampling, which keeps a distribution alone. Pure:
// thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/row_request.h"

namespace transept {

// `samples` are of the sequence's last token and of each draft: samples[r] is the choice in the place of drafts[r]. The
// first result + 1 of them are real. REQUIRES: samples.size() == drafts.size() + 1.
int32_t num_accepted(std::span<const int32_t> drafts, std::span<const RowSample> samples);

}  // namespace transept
