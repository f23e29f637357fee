// What a proxy reads of a request that it holds until its inputs are encoded (docs/decisions/0040): the body of a route
// with prompts of its own is split into its inputs, and is forwarded with what has come of them. A body that cannot be
// held goes to a decode instance as it came, which answers it, errors included. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "disagg/injected_input.h"
#include "net/http.h"

namespace transept {

// A member of the body of POST /v1/encode is missing, which is the consumer.
struct HeldPrompt {
  Json body;                       // {"prompt": .., and the fields that an encode has}
  int32_t num_positions_hint = 1;  // a guess of what it comes to
};

// The prompts of a request, in order. Errors: another route, another Content-Type, a body that is not what the route
// takes, one with encoded_inputs of its own, or with more than `max_prompts`.
StatusOr<std::vector<HeldPrompt>> split_prompts(const HttpRequest& request, size_t max_prompts);

// The guesses of all.
int64_t num_positions(const std::vector<HeldPrompt>& prompts);

// The body with the field encoded_inputs. REQUIRES: split_prompts() has taken it.
std::string with_encoded_inputs(std::string_view body, const InjectedInputs& inputs);

}  // namespace transept
