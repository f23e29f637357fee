#include "async/choose_replica.h"

#include <algorithm>

namespace transept {

int64_t num_expected_tokens(const EncoderDecoderInputs& inputs, int64_t num_encoder_tokens,
                            const SamplingParams& params) {
  const auto num_prompt = static_cast<int64_t>(inputs.prompt_token_ids.size());
  const int64_t num_answer = std::clamp<int64_t>(params.max_tokens, 0, num_encoder_tokens + num_prompt);
  return num_encoder_tokens + params.num_seqs() * (num_prompt + num_answer);
}

size_t choose_replica(std::span<const ReplicaLoad> replicas, int64_t num_tokens, size_t first) {
  size_t least = first % replicas.size();
  std::optional<size_t> holder;
  for (size_t i = 0; i < replicas.size(); ++i) {
    const size_t at = (first + i) % replicas.size();
    if (replicas[at].num_tokens < replicas[least].num_tokens) least = at;
    if (!replicas[at].holds_input) continue;
    if (!holder.has_value() || replicas[at].num_tokens < replicas[*holder].num_tokens) holder = at;
  }
  if (holder.has_value() && replicas[*holder].num_tokens - replicas[least].num_tokens <= 2 * num_tokens) return *holder;
  return least;
}

}  // namespace transept
