// How much of a step encodes may take while others decode: as long as decoding a step takes, so that no sequence's next
// token is much later than usual; longer the more requests wait, because then most steps carry a share of an encode
// anyway, and larger batches decode at a better price. Learns what decoding and encoding take from the steps that were
// run.
//
// Owned by the engine; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "engine/step_plan.h"

namespace transept {

struct EncodeSliceOptions {
  enum class Mode : uint8_t {
    kNone,   // encodes run whole, in one step
    kAuto,   // as above
    kFixed,  // `seconds` of a step
  };
  Mode mode = Mode::kNone;
  double seconds = 0;
};

// "none", "auto", or milliseconds. Errors: anything else; not between 0.001 and 10000.
StatusOr<EncodeSliceOptions> parse_encode_slice(const std::string& value);

class EncodePacer final {
 public:
  explicit EncodePacer(const EncodeSliceOptions& options) : options_(options) {}

  // Of the next step.
  double slice_seconds() const;
  // Encoder tokens that fit into it; unset: no limit, or nothing was encoded yet.
  std::optional<int32_t> max_tokens_beside() const;

  void count(const SchedulerOutputs& scheduled, const StepOutput& output);

 private:
  void count_encode(double seconds, int32_t num_tokens);

  EncodeSliceOptions options_;
  // Averages over some steps, so that shares are about as long as each other: a step that takes long beside those
  // before it is what shall not be.
  double decode_seconds_ = 0;  // of a step
  double num_waiting_ = 0;
  double encode_seconds_per_token_ = 0;  // 0: unknown
  double long_seconds_ = 0;              // of the long encode under way, so far
  int32_t long_tokens_ = 0;
};

}  // namespace transept
