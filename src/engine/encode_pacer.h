// Decides how long items may be encoded, or their rows taken, in a step while other requests decode: as long as
// decoding a step takes, so that no request's next token is much later than usual. The more requests wait, the longer:
// most steps then carry a share of an encode anyway, and larger batches decode more efficiently. Learns the times of
// decoding, of encoding and of taking rows (the projection to cross K and V alone) from the steps that were run.
//
// Owned by the engine. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "rank/step_plan.h"

namespace transept {

struct EncodeSliceOptions {
  enum class Mode : uint8_t {
    kNone,   // encodes run whole, in one step
    kAuto,   // the rule above
    kFixed,  // `seconds` per step
  };
  Mode mode = Mode::kNone;
  double seconds = 0;
};

// "none", "auto", or milliseconds. Errors: any other text; a number outside 0.001 to 10000.
StatusOr<EncodeSliceOptions> parse_encode_slice(const std::string& value);

class EncodePacer final {
 public:
  explicit EncodePacer(const EncodeSliceOptions& options) : options_(options) {}

  // How long encodes may run in the next step.
  double slice_seconds() const;
  // Tasks of the executor's thread pool that take about so long, of an item whose rows come from `source`; at least 1.
  int64_t slice_tasks(RowSource source) const;
  // Encoder tokens that fit into slice_seconds(), of items whose rows come from `source`; unset: no limit, or there was
  // no such item yet.
  std::optional<int32_t> max_tokens_beside(RowSource source) const;

  void count(const SchedulerOutputs& scheduled, const StepOutput& output);

 private:
  struct Rate {  // seconds; 0: unknown
    double per_token = 0;
    double per_task = 0;
  };
  const Rate& rate_of(RowSource source) const { return source == RowSource::kEncode ? encoding_ : taking_; }

  EncodeSliceOptions options_;
  // Averages over several steps, so that slices are about equally long: no step should take much longer than those
  // before it.
  double decode_seconds_ = 0;  // per step
  double num_waiting_ = 0;
  Rate encoding_, taking_;
  double long_seconds_ = 0;  // of the long encode under way, so far
  int32_t long_tokens_ = 0;
};

}  // namespace transept
