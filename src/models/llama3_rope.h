// Rotary positions of Llama 3.1 and later: angles of pairs that turn slowly are divided by a factor, those of fast ones
// stay, with a smooth passage between. Pure functions: thread-safe. Source: transformers, modeling_rope_utils.py,
// _compute_llama3_parameters.
#pragma once

#include <vector>

#include "base/status.h"
#include "core/model_config.h"

namespace transept {

struct Llama3Scaling {
  double factor = 8, low = 1, high = 4;  // high: above it turns within the old context, a pair stays
  double old_positions = 8192;
};

// Reads an object of rope_type llama3. max_positions: of the model, in place of original_max_position_embeddings.
// Errors, naming file and field: kInvalidArgument: a value that is missing or out of range, or that contradicts
// another.
StatusOr<Llama3Scaling> read_llama3_scaling(const ConfigReader& rope, int64_t max_positions);

// Scales angles at position 1, rounding to float32 where the reference rounds.
void scale_llama3(const Llama3Scaling& scaling, std::vector<float>& frequencies);

}  // namespace transept
