#include "engine/encode_pacer.h"

#include <algorithm>
#include <cstdlib>

namespace transept {
namespace {

constexpr double kLeastSeconds = 0.001;  // below, handing a slice over is not little beside it
constexpr double kMostWaiting = 7;       // a share grows to eight times what decoding takes
constexpr double kDecodeWeight = 0.125, kEncodeWeight = 0.25, kWaitingWeight = 0.03125;  // of the newest measurement
constexpr double kLeastMilliseconds = 0.001, kMostMilliseconds = 10000;

double average(double before, double now, double weight) {
  return before == 0 ? now : before + weight * (now - before);
}

}  // namespace

StatusOr<EncodeSliceOptions> parse_encode_slice(const std::string& value) {
  using Mode = EncodeSliceOptions::Mode;
  if (value == "none") return EncodeSliceOptions{Mode::kNone, 0};
  if (value == "auto") return EncodeSliceOptions{Mode::kAuto, 0};
  char* end = nullptr;
  const double milliseconds = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && end == value.c_str() + value.size();
  if (!is_number || !(milliseconds >= kLeastMilliseconds && milliseconds <= kMostMilliseconds)) {
    return invalid_argument("--encode-slice ", value, ": expected none, auto, or milliseconds between ",
                            kLeastMilliseconds, " and ", kMostMilliseconds);
  }
  return EncodeSliceOptions{Mode::kFixed, milliseconds * 1e-3};
}

double EncodePacer::slice_seconds() const {
  if (options_.mode == EncodeSliceOptions::Mode::kFixed) return options_.seconds;
  return std::max(decode_seconds_, kLeastSeconds) * (1 + std::min(num_waiting_, kMostWaiting));
}

int64_t EncodePacer::slice_tasks(RowSource source) const {
  const double per_task = rate_of(source).per_task;
  if (per_task == 0) return 1;
  constexpr double kMost = 1e9;
  return std::max<int64_t>(static_cast<int64_t>(std::min(slice_seconds() / per_task, kMost)), 1);
}

std::optional<int32_t> EncodePacer::max_tokens_beside(RowSource source) const {
  const double per_token = rate_of(source).per_token;
  if (options_.mode == EncodeSliceOptions::Mode::kNone || per_token == 0) return std::nullopt;
  constexpr double kMost = 1 << 30;
  return static_cast<int32_t>(std::min(slice_seconds() / per_token, kMost));
}

void EncodePacer::count(const SchedulerOutputs& scheduled, const StepOutput& output) {
  num_waiting_ += kWaitingWeight * (scheduled.num_waiting - num_waiting_);
  if (scheduled.num_decoder_tokens > 0) {
    decode_seconds_ = average(decode_seconds_, output.decode_seconds, kDecodeWeight);
  }
  const LongEncode& encode = scheduled.long_encode;
  const bool is_long_encoding = encode.runs && encode.encode.source == RowSource::kEncode;
  const bool encodes = scheduled.num_encoder_tokens > 0 || is_long_encoding;
  const bool takes = scheduled.num_injected_tokens > 0 || (encode.runs && !is_long_encoding);
  if (encode.begins) {
    long_seconds_ = 0;
    long_tokens_ = encode.encode.num_rows;
  }
  if (encode.runs) long_seconds_ += output.encode_seconds;
  if (encodes == takes) return;  // a step with both says nothing of either
  Rate& rate = takes ? taking_ : encoding_;
  if (output.num_encode_tasks > 0) {
    const double seconds_per_task = output.encode_seconds / static_cast<double>(output.num_encode_tasks);
    rate.per_task = average(rate.per_task, seconds_per_task, kEncodeWeight);
  }
  const auto count_tokens = [&rate](double seconds, int32_t num_tokens) {
    rate.per_token = average(rate.per_token, seconds / num_tokens, kEncodeWeight);
  };
  if (!encode.runs) {
    count_tokens(output.encode_seconds, takes ? scheduled.num_injected_tokens : scheduled.num_encoder_tokens);
  } else if (output.long_encode_ended && scheduled.encodes.empty()) {
    // Beside its end others may have been encoded, whole: such a step says little of either.
    count_tokens(long_seconds_, long_tokens_);
  }
}

}  // namespace transept
