#include "layers/sinusoidal.h"

#include <cmath>

#include "base/check.h"

namespace transept {
namespace {

constexpr double kLongestWavelength = 10000.0;

}  // namespace

SinusoidalRows::SinusoidalRows(Sinusoid kind, int64_t dim) : kind_(kind), dim_(dim) {
  CHECK(dim >= 4);
  const int64_t num_cosines = dim / 2;
  if (kind == Sinusoid::kByDim) {
    for (int64_t i = 0; i < dim - num_cosines; ++i) {
      const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(dim);
      wavelengths_.push_back(std::pow(kLongestWavelength, exponent));
    }
    return;
  }
  const double step = std::log(kLongestWavelength) / static_cast<double>(num_cosines - 1);
  for (int64_t i = 0; i < num_cosines; ++i) {
    frequencies_.push_back(std::exp(static_cast<float>(i) * static_cast<float>(-step)));
  }
}

void SinusoidalRows::compute(int64_t position, std::span<float> row) const {
  CHECK(position >= 0 && static_cast<int64_t>(row.size()) == dim_);
  const size_t num_cosines = row.size() / 2;
  const size_t num_sines = kind_ == Sinusoid::kByDim ? row.size() - num_cosines : num_cosines;
  for (size_t i = 0; i < num_sines; ++i) row[i] = static_cast<float>(std::sin(angle(position, i)));
  for (size_t i = 0; i < num_cosines; ++i) row[num_sines + i] = static_cast<float>(std::cos(angle(position, i)));
  if (num_sines + num_cosines < row.size()) row.back() = 0;
}

// The references round where they work: kByDim in double until the end, kByHalf in float at every step, which makes a
// difference of 1e-4 at position 1000.
double SinusoidalRows::angle(int64_t position, size_t column) const {
  if (kind_ == Sinusoid::kByDim) return static_cast<double>(position) / wavelengths_[column];
  return static_cast<double>(static_cast<float>(position) * frequencies_[column]);
}

}  // namespace transept
