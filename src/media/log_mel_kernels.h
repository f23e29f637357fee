// The inner loop of log_mel.h, one function per level. ops/kernels.h has the rule for this header, log_mel_kernel.h and
// the files with -m flags: C headers only, and every function is a template over a level's own type, or static. Pure
// functions: thread-safe with a scratch per thread.
#pragma once

#include <stdint.h>

namespace transept {

// One step of the Fourier transform (Stockham's self-sorting form): divides the remaining length by `radix`.
struct FourierStage {
  int32_t radix;
  int32_t groups;         // remaining length / radix
  const float* twiddles;  // [groups, radix - 1, 2]: cos and -sin of 2 pi p k / length, k from 1
  const float* roots;     // [radix, 2]: cos and -sin of 2 pi k / radix; only read for radices above 5
};

// All inputs of the loop but the samples; borrowed from LogMelTables. The n_fft real samples of a frame are transformed
// as n_fft / 2 complex ones.
struct LogMelPlan {
  int32_t n_fft;
  int32_t hop_length;
  int32_t num_mel_bins;
  int32_t num_stages;
  const FourierStage* stages;
  const float* window;   // [n_fft]
  const float* split;    // [n_fft / 4 + 1, 2]: cos and -sin of 2 pi k / n_fft, to combine even and odd samples
  const int32_t* first;  // [num_mel_bins]: the first frequency of each filter ...
  const int32_t* count;  // [num_mel_bins]: ... and its number of frequencies
  const float* weights;  // the weights of all filters, concatenated
};

// Frame i is samples[i * hop_length .. + n_fft). Fills out [num_frames, num_mel_bins] with log10(max(mel power,
// 1e-10)). scratch: at least log_mel_scratch_floats(plan) floats, aligned to 64 bytes.
using LogMelFunction = void (*)(const LogMelPlan& plan, const float* samples, int64_t num_frames, float* scratch,
                                float* out);

static constexpr int kLogMelMaxLanes = 8;  // frames per vector, at most

static inline int64_t log_mel_scratch_floats(const LogMelPlan& plan) {
  return kLogMelMaxLanes * (int64_t{2} * plan.n_fft + plan.n_fft / 2 + 1);
}

namespace generic {
void log_mel_frames(const LogMelPlan& plan, const float* samples, int64_t num_frames, float* scratch, float* out);
}
namespace avx2 {
void log_mel_frames(const LogMelPlan& plan, const float* samples, int64_t num_frames, float* scratch, float* out);
}
}  // namespace transept
