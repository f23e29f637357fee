// Which replica of the engine a request goes to. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/content_digest.h"
#include "core/prompt.h"
#include "core/sampling_params.h"

namespace transept {

// What a request adds to the engine that it goes to.
struct RequestLoad {
  int64_t num_tokens = 0;
  std::optional<ContentDigest> content;  // of its encoder input, if requests may share it; unset: they may not
};

// What is in flight in one replica, waiting and running.
struct ReplicaLoad {
  int64_t num_tokens = 0;
  bool holds_input = false;  // one of its requests has the same encoder input
};

// Of the encoder input once, and of each sequence its prompt and an answer as long as all that it is given, or what
// max_tokens allows if less: its real length is unknown.
int64_t num_expected_tokens(const EncoderDecoderInputs& inputs, int64_t num_encoder_tokens,
                            const SamplingParams& params);

// The one with the fewest tokens, of equals the first from `first` on, round and round. But one that holds the encoder
// input is taken if it has no more than twice the request's tokens above the fewest: that much waiting is cheaper than
// another encode, and however many ask about the same input, no replica is idle for long. REQUIRES: there is one.
size_t choose_replica(std::span<const ReplicaLoad> replicas, int64_t num_tokens, size_t first);

}  // namespace transept
