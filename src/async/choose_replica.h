// Chooses the engine replica for a request. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/content_digest.h"
#include "core/prompt.h"
#include "core/sampling_params.h"

namespace transept {

// What a request adds to the load of its replica.
struct RequestLoad {
  int64_t num_tokens = 0;
  std::optional<ContentDigest> content;  // of its encoder input, where other requests may share it; else unset
};

// What is in flight in one replica, waiting and running.
struct ReplicaLoad {
  int64_t num_tokens = 0;
  // A request in flight has the same encoder input, or had it lately: its tables may still be there.
  bool holds_input = false;
};

// Counts the encoder input once, and for each sequence its prompt and an answer. The length of the answer is unknown:
// it is taken to be the length of encoder input and prompt together, or max_tokens if that is less.
int64_t num_expected_tokens(const EncoderDecoderInputs& inputs, int64_t num_encoder_tokens,
                            const SamplingParams& params);

// Returns the replica with the fewest tokens; among equals the first from `first` on, round-robin. A replica that holds
// the encoder input is preferred if it has at most twice the request's tokens above the fewest: that much waiting is
// cheaper than another encode, and no replica is idle for long, however many requests share the input. REQUIRES: at
// least one replica.
size_t choose_replica(std::span<const ReplicaLoad> replicas, int64_t num_tokens, size_t first);

}  // namespace transept
