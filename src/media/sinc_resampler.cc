#include "media/sinc_resampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace transept {
namespace {

constexpr int kZeroCrossings = 16;
constexpr double kCutoff = 0.97;
constexpr double kBeta = 9;
constexpr int64_t kMaxPhases = 1024;  // rates without a common factor share the nearest: an error below -60 dB

// The modified Bessel function of the first kind, order 0, by its series.
double bessel(double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-15; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

// In lanes, which vectors add at once: one sum after the other took half of what a silent live session costs.
float inner_product(std::span<const float> a, std::span<const float> b) {
  constexpr size_t kLanes = 8;
  std::array<float, kLanes> sums{};
  size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < a.size(); ++i) sums[i % kLanes] += a[i] * b[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0f);
}

double sinc(double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

}  // namespace

SincResampler::SincResampler(int32_t from, int32_t to) {
  const int32_t common = std::gcd(from, to);
  from_ = from / common;
  to_ = to / common;
  if (from_ == to_) return;
  const double scale = std::min(1.0, static_cast<double>(to_) / static_cast<double>(from_));
  half_ = static_cast<int64_t>(std::ceil(kZeroCrossings / scale));
  num_phases_ = std::min(to_, kMaxPhases);
  window_.assign(static_cast<size_t>(half_ - 1), 0.0f);  // silence before the beginning
  std::vector<double> row(static_cast<size_t>(2 * half_));
  for (int64_t phase = 0; phase <= num_phases_; ++phase) {
    const double place = static_cast<double>(phase) / static_cast<double>(num_phases_);
    for (size_t i = 0; i < row.size(); ++i) {
      const double t = static_cast<double>(static_cast<int64_t>(i) - half_ + 1) - place;
      const double inside = 1 - std::pow(t / static_cast<double>(half_), 2);
      row[i] = inside <= 0 ? 0 : sinc(kCutoff * scale * t) * bessel(kBeta * std::sqrt(inside));
    }
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (const double tap : row) taps_.push_back(static_cast<float>(tap / sum));
  }
}

void SincResampler::convert(std::span<const float> samples, std::vector<float>& out) {
  if (from_ == to_) {
    out.insert(out.end(), samples.begin(), samples.end());
    return;
  }
  window_.insert(window_.end(), samples.begin(), samples.end());
  num_in_ += static_cast<int64_t>(samples.size());
  run(num_in_ - half_, out);
}

void SincResampler::flush(std::vector<float>& out) {
  if (from_ == to_) return;
  window_.insert(window_.end(), static_cast<size_t>(half_), 0.0f);
  run(num_in_, out);
}

// Appends the outputs whose place in the input is before `end`, whose neighbours window_ has.
void SincResampler::run(int64_t end, std::vector<float>& out) {
  const auto num_taps = static_cast<size_t>(2 * half_);
  for (;; ++num_out_) {
    const int64_t place = num_out_ * from_ / to_, rest = num_out_ * from_ % to_;
    if (place >= end) break;
    const int64_t phase = (rest * num_phases_ + to_ / 2) / to_;
    const float* input = window_.data() + (place - first_);
    const float* taps = taps_.data() + static_cast<size_t>(phase) * num_taps;
    out.push_back(inner_product(std::span(input, num_taps), std::span(taps, num_taps)));
  }
  const int64_t done = std::min(num_out_ * from_ / to_, first_ + static_cast<int64_t>(window_.size()) - half_ + 1);
  if (done <= first_) return;
  window_.erase(window_.begin(), window_.begin() + static_cast<ptrdiff_t>(done - first_));
  first_ = done;
}

}  // namespace transept
