// For tests of the engine's threads over an executor without a model: requests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "async/async_engine.h"
#include "engine/engine_testing.h"

namespace transept::testing {

// The encoder input is five tokens `input`.
inline RequestSpec make_spec(const std::string& id, int32_t max_tokens, uint64_t seed, int32_t input = 3) {
  RequestSpec spec;
  spec.id = id;
  spec.inputs.set_encoder_ids(std::vector<int32_t>(static_cast<size_t>(5), input));
  spec.inputs.prompt_token_ids.assign(2, 2);
  spec.params.max_tokens = max_tokens;
  spec.params.seed = seed;
  return spec;
}

// Adds a request that must be accepted.
inline RequestStream add_request(AsyncEngine& engine, RequestSpec spec) {
  StatusOr<RequestStream> stream = engine.add_request(std::move(spec));
  CHECK(stream.ok(), error_message(stream.status()));
  return std::move(stream).value();
}

}  // namespace transept::testing
