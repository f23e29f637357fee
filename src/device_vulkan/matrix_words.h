// Kernels of matrices as devices take them. They are written and compiled with GL_NV_cooperative_matrix, which all
// compilers since 2019 know, and GL_KHR_cooperative_matrix, which Debian 12's does not, differs from it in words alone.
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace transept {

// The SPIR-V with SPV_NV_cooperative_matrix replaced by SPV_KHR_cooperative_matrix. What a matrix is for, which the
// latter says in its type, follows from its dimensions: [m, k], [k, n] or [m, n] of the specialization constants 0, 1
// and 2. Integers are signed. Errors: kInternal, words that are none of this folder's kernels.
StatusOr<std::vector<uint32_t>> khr_matrix_words(std::span<const uint32_t> words);

}  // namespace transept
