// A step's plan as bytes, for ranks that are other processes: what a StepPlan says to a rank, and nothing of what the
// engine counts for itself (SchedulerOutputs::num_*). One version is spoken; bytes of another are refused.
//
//   magic "TPLN", version (varint), fields in the order of plan_codec.cc's describe(), nothing behind them
//
// Numbers are packed as base/byte_stream.h says. A plan of 64 decoding sequences is some 5 KiB, and takes some 15 us to
// write and to read, both together (plan_codec_bench).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "rank/step_plan.h"

namespace transept {

inline constexpr uint32_t kPlanVersion = 7;

// Replaces `bytes`, whose memory is reused.
void encode_plan(const StepPlan& plan, std::vector<std::byte>& bytes);

// Replaces `plan`, whose memory is reused; what encode_plan leaves out is 0. Errors: bytes of another kind or version;
// a field that is cut off or out of range, by its name and place. `plan` is not to be used then.
Status decode_plan(std::span<const std::byte> bytes, StepPlan& plan);

}  // namespace transept
