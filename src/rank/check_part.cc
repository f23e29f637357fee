#include "rank/check_part.h"

#include <algorithm>

#include "base/strings.h"

namespace transept {

Status check_part(const StepPlan& plan, ModelPart part) {
  if (part == ModelPart::kWhole) return ok_status();
  const auto refuse = [&](std::string_view field, std::string_view why) {
    return absl::FailedPreconditionError(
        str_cat("plan: ", field, ": ", why, part == ModelPart::kEncoder ? " by an encoder alone" : " without encoder"));
  };
  const SchedulerOutputs& scheduled = plan.scheduled;
  const auto is_to_encode = [](const PlannedEncode& encode) { return encode.source == RowSource::kEncode; };
  const bool begins_long = scheduled.long_encode.runs && scheduled.long_encode.begins;
  if (part == ModelPart::kDecoder) {
    const bool encodes = std::ranges::any_of(scheduled.encodes, is_to_encode) ||
                         (begins_long && is_to_encode(scheduled.long_encode.encode));
    return encodes ? refuse("encodes", "an item cannot be encoded") : ok_status();
  }
  if (!scheduled.groups.empty()) return refuse("groups", "rows cannot be decoded");
  if (scheduled.long_encode.runs) return refuse("long_encode", "an encode cannot be spread over steps");
  for (const PlannedEncode& encode : scheduled.encodes) {
    if (!is_to_encode(encode)) return refuse("encode source", "rows cannot be taken");
    if (encode.writes != Consumers::kNone) return refuse("encode writes", "cross KV and tables cannot be written");
  }
  return ok_status();
}

}  // namespace transept
