#include "media/log_mel_kernel.h"

namespace transept::avx2 {
namespace {

struct LogMelLevel {
  static constexpr int kLanes = 8;
  typedef float Vec __attribute__((vector_size(kLanes * sizeof(float)), may_alias));
  typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t)), may_alias));
};

}  // namespace

void log_mel_frames(const LogMelPlan& plan, const float* samples, int64_t num_frames, float* scratch, float* out) {
  LogMelKernel<LogMelLevel>::frames(plan, samples, num_frames, scratch, out);
}

}  // namespace transept::avx2
