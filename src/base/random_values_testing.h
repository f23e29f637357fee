// For tests: numbers of a normal distribution.
//
// They are drawn by code that is optimised in every build, and that no sanitizer checks: as tests are compiled there,
// a profile gave it a fifth to a quarter of the tests of kernels.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace transept::testing {

// Fills `values` with numbers of mean 0, as one std::normal_distribution<float> draws them from `random`. One thread.
void fill_with_normals(std::span<float> values, std::mt19937& random, float deviation = 1);

// So many of them, from a generator of this seed. Any thread.
std::vector<float> random_normals(int64_t count, uint32_t seed, float deviation = 1);

}  // namespace transept::testing
