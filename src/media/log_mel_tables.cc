#include "media/log_mel_tables.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace transept {
namespace {

constexpr double kTau = 2 * std::numbers::pi;

// Slaney's scale: linear below 1000 Hz, logarithmic above.
constexpr double kHertzPerMel = 200.0 / 3, kLogHertz = 1000, kLogMel = kLogHertz / kHertzPerMel;
const double kLogStep = std::log(6.4) / 27;

double mel_of(double hertz) {
  return hertz < kLogHertz ? hertz / kHertzPerMel : kLogMel + std::log(hertz / kLogHertz) / kLogStep;
}

double hertz_of(double mel) {
  return mel < kLogMel ? mel * kHertzPerMel : kLogHertz * std::exp(kLogStep * (mel - kLogMel));
}

void append_turn(std::vector<float>& out, int64_t numerator, int64_t denominator) {
  const double angle = kTau * static_cast<double>(numerator % denominator) / static_cast<double>(denominator);
  out.push_back(static_cast<float>(std::cos(angle)));
  out.push_back(static_cast<float>(-std::sin(angle)));
}

// 4 as long as it divides, then the primes.
std::vector<int32_t> radices_of(int32_t length) {
  std::vector<int32_t> radices;
  for (; length % 4 == 0; length /= 4) radices.push_back(4);
  for (int32_t prime = 2; length > 1; ++prime) {
    for (; length % prime == 0; length /= prime) radices.push_back(prime);
  }
  return radices;
}

// Vectors of 16 were tried: no faster, most of the time goes into moving samples to their lanes.
LogMelFunction frames_function(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::kAvx2) return avx2::log_mel_frames;
#endif
  (void)isa;
  return generic::log_mel_frames;
}

}  // namespace

MelFilters make_mel_filters(const LogMelOptions& options) {
  const int32_t num_frequencies = options.n_fft / 2 + 1;
  const double top = mel_of(options.sampling_rate / 2.0);
  const auto edge = [&](int32_t i) { return hertz_of(top * i / (options.num_mel_bins + 1)); };
  MelFilters filters;
  for (int32_t bin = 0; bin < options.num_mel_bins; ++bin) {
    const double low = edge(bin), middle = edge(bin + 1), high = edge(bin + 2);
    int32_t first = 0, count = 0;
    for (int32_t k = 0; k < num_frequencies; ++k) {
      const double hertz = static_cast<double>(options.sampling_rate) * k / options.n_fft;
      const double weight = std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      if (weight <= 0) continue;
      if (count++ == 0) first = k;
      filters.weights.push_back(static_cast<float>(weight * 2 / (high - low)));
    }
    filters.first.push_back(first);
    filters.count.push_back(count);
  }
  return filters;
}

LogMelTables::LogMelTables(const LogMelOptions& given, Isa isa)
    : options(given), plan{}, frames(frames_function(isa)), filters_(make_mel_filters(given)) {
  for (int32_t i = 0; i < options.n_fft; ++i) {
    window_.push_back(static_cast<float>(0.5 - 0.5 * std::cos(kTau * i / options.n_fft)));
  }
  for (int32_t k = 0; k <= options.n_fft / 4; ++k) append_turn(split_, k, options.n_fft);
  plan_transform();
  plan = {.n_fft = options.n_fft,
          .hop_length = options.hop_length,
          .num_mel_bins = options.num_mel_bins,
          .num_stages = static_cast<int32_t>(stages_.size()),
          .stages = stages_.data(),
          .window = window_.data(),
          .split = split_.data(),
          .first = filters_.first.data(),
          .count = filters_.count.data(),
          .weights = filters_.weights.data()};
}

void LogMelTables::plan_transform() {
  int32_t length = options.n_fft / 2;
  const std::vector<int32_t> radices = radices_of(length);
  twiddles_.resize(radices.size());
  roots_.resize(radices.size());
  for (size_t i = 0; i < radices.size(); ++i) {
    const int32_t radix = radices[i], groups = length / radix;
    for (int32_t p = 0; p < groups; ++p) {
      for (int32_t k = 1; k < radix; ++k) append_turn(twiddles_[i], int64_t{p} * k, length);
    }
    for (int32_t k = 0; k < radix; ++k) append_turn(roots_[i], k, radix);
    stages_.push_back({.radix = radix, .groups = groups, .twiddles = twiddles_[i].data(), .roots = roots_[i].data()});
    length = groups;
  }
}

}  // namespace transept
