#include "layers/sinusoidal.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace transept {
namespace {

constexpr double kLongestWavelength = 10000.0;

}  // namespace

std::vector<float> sinusoidal_table(Sinusoid kind, int64_t num_rows, int64_t dim) {
  CHECK(num_rows >= 0 && dim >= 4);
  const bool by_dim = kind == Sinusoid::kByDim;
  const int64_t num_cosines = dim / 2;
  const int64_t num_sines = by_dim ? dim - num_cosines : num_cosines;
  // The references round where they work: kByDim in double until the end, kByHalf in float at every step, which makes a
  // difference of 1e-4 at position 1000.
  std::vector<double> wavelengths;
  std::vector<float> frequencies;
  for (int64_t i = 0; i < std::max(num_sines, num_cosines); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(dim);
    wavelengths.push_back(std::pow(kLongestWavelength, exponent));
    const double step = std::log(kLongestWavelength) / static_cast<double>(num_cosines - 1);
    frequencies.push_back(std::exp(static_cast<float>(i) * static_cast<float>(-step)));
  }
  const auto angle = [&](int64_t position, int64_t column) {
    const size_t i = static_cast<size_t>(column);
    if (by_dim) return static_cast<double>(position) / wavelengths[i];
    return static_cast<double>(static_cast<float>(position) * frequencies[i]);
  };
  std::vector<float> table(static_cast<size_t>(num_rows * dim));
  for (int64_t position = 0; position < num_rows; ++position) {
    float* row = table.data() + position * dim;
    for (int64_t i = 0; i < num_sines; ++i) row[i] = static_cast<float>(std::sin(angle(position, i)));
    for (int64_t i = 0; i < num_cosines; ++i) row[num_sines + i] = static_cast<float>(std::cos(angle(position, i)));
  }
  return table;
}

}  // namespace transept
