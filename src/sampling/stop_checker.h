// When a sequence ends, and where its text is cut. Pure functions of the sequence's state.
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
  bool hides_token = false;           // the last token's text is left out (an end token or a stop id)
  std::optional<size_t> text_length;  // what remains of the text; none: all of it
};

// After the `num_generated`-th token. An end token stops before a stop id does, a stop id before the length.
StopDecision check_stop_token(const SamplingParams& params, int32_t token_id, int32_t num_generated);

// A stop string in `text`, of which only what lies past `num_checked` bytes is new: the earliest one, of several at one
// place the first listed. Looked for only when more than min_tokens tokens are there.
StopDecision check_stop_string(const SamplingParams& params, std::string_view text, size_t num_checked,
                               int32_t num_generated);

}  // namespace transept
