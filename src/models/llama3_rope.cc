#include "models/llama3_rope.h"

#include <numbers>

#include "models/model_spec.h"

namespace transept {

StatusOr<Llama3Scaling> read_llama3_scaling(const ConfigReader& rope, int64_t max_positions) {
  constexpr double kMost = 1e6, kLeast = 1e-6;
  Llama3Scaling scaling;
  ASSIGN_OR_RETURN(scaling.factor, rope.number("factor", 1, kMost));
  ASSIGN_OR_RETURN(scaling.low, rope.number("low_freq_factor", kLeast, kMost));
  ASSIGN_OR_RETURN(scaling.high, rope.number("high_freq_factor", kLeast, kMost));
  if (scaling.high <= scaling.low) {
    return rope.error("high_freq_factor", "is not above low_freq_factor");
  }
  ASSIGN_OR_RETURN(const int64_t old_positions,
                   rope.integer("original_max_position_embeddings", 1, ModelSpec::kMaxPositions, max_positions));
  scaling.old_positions = static_cast<double>(old_positions);
  return scaling;
}

void scale_llama3(const Llama3Scaling& scaling, std::vector<float>& frequencies) {
  const auto factor = static_cast<float>(scaling.factor), low = static_cast<float>(scaling.low);
  const auto span = static_cast<float>(scaling.high - scaling.low);
  const auto old_positions = static_cast<float>(scaling.old_positions);
  const auto longest = static_cast<float>(scaling.old_positions / scaling.low);
  const auto shortest = static_cast<float>(scaling.old_positions / scaling.high);
  constexpr auto kTurn = static_cast<float>(2 * std::numbers::pi);
  for (float& frequency : frequencies) {
    const float wave = kTurn / frequency;
    if (wave > longest) {
      frequency /= factor;
    } else if (wave >= shortest) {
      const float smooth = (old_positions / wave - low) / span;
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
}

}  // namespace transept
