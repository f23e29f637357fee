// Decides whether a sequence ends, and where its text is cut. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/request_output.h"
#include "core/sampling_params.h"

namespace transept {

struct StopDecision {
  FinishReason reason = FinishReason::kNone;
  std::variant<std::monostate, int32_t, std::string> stop_reason;
  bool hides_token = false;           // the text omits the last token (an end token or a stop id)
  std::optional<size_t> text_length;  // bytes of the text to keep; unset: all
};

// Checks the `num_generated`-th token. Precedence: end token, then stop id, then length. An end token that
// forced_eos_token_ids put at the last place ends the sequence by length.
StopDecision check_stop_token(const SamplingParams& params, int32_t token_id, int32_t num_generated);

// Searches for a stop string in `text`, whose first `num_checked` bytes were searched before. Finds the earliest one,
// and of several at one place the first listed. Finds none unless num_generated > min_tokens. REQUIRES: num_checked <=
// text.size(); no stop string is empty.
StopDecision check_stop_string(const SamplingParams& params, std::string_view text, size_t num_checked,
                               int32_t num_generated);

}  // namespace transept
