#include "sampling/stop_checker.h"

#include <algorithm>

namespace transept {
namespace {

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

StopDecision check_stop_token(const SamplingParams& params, int32_t token_id, int32_t num_generated) {
  const bool is_last = num_generated >= params.max_tokens;
  if (!params.ignore_eos && contains(params.eos_token_ids, token_id)) {
    // An end token that forced_eos_token_id put at the last place is the length's doing.
    const bool is_forced =
        is_last && !params.forced_eos_token_ids.empty() && params.forced_eos_token_ids.front() == token_id;
    return {is_forced ? FinishReason::kLength : FinishReason::kStop, {}, !params.include_stop_str_in_output, {}};
  }
  if (contains(params.stop_token_ids, token_id)) {
    return {FinishReason::kStop, token_id, !params.include_stop_str_in_output, {}};
  }
  return {is_last ? FinishReason::kLength : FinishReason::kNone, {}, false, {}};
}

StopDecision check_stop_string(const SamplingParams& params, std::string_view text, size_t num_checked,
                               int32_t num_generated) {
  StopDecision decision;
  if (num_generated <= params.min_tokens) return decision;
  size_t best = std::string_view::npos;
  for (const std::string& stop : params.stop) {
    // A stop string may begin in text that was looked at before.
    const size_t overlap = std::min(num_checked, stop.size() - 1);
    const size_t at = text.find(stop, num_checked - overlap);
    if (at >= best) continue;
    best = at;
    decision.reason = FinishReason::kStop;
    decision.stop_reason = stop;
    decision.text_length = params.include_stop_str_in_output ? at + stop.size() : at;
  }
  return decision;
}

}  // namespace transept
