// Rows of a step whose matrices are an expert's: CogAgent computes the rows of a picture by others than those of text.
// A picture's rows stand one behind another, so a step has few runs of rows of one kind, and each is a product of its
// own: no row is copied, and a row's bits do not depend on which others there are. Functions without state.
#pragma once

#include <cstdint>

#include "core/decoder_layout.h"
#include "tensor/tensor.h"

namespace transept {

// Calls run(begin, end, is_experts) for rows [0, num_rows), in order: each call has as many as are alike. Empty kinds:
// no row is an expert's.
template <typename F>
void for_each_run(View<uint8_t> kinds, int64_t num_rows, const F& run) {
  if (kinds.empty()) return run(int64_t{0}, num_rows, false);
  const auto is_experts = [&](int64_t row) { return kinds[static_cast<size_t>(row)] == kExpertRows; };
  for (int64_t begin = 0; begin < num_rows;) {
    int64_t end = begin + 1;
    while (end < num_rows && is_experts(end) == is_experts(begin)) ++end;
    run(begin, end, is_experts(begin));
    begin = end;
  }
}

}  // namespace transept
