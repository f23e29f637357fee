// The field `encoded_inputs` of a request with prompts: a proxy that has had them encoded says under which names their
// rows are here (disagg/injected_input.h). The prompts stand in the request as they came: it is the same request, and
// is encoded again if its rows are gone. Thread-safe functions.
#pragma once

#include <cstddef>

#include "base/json.h"
#include "base/status.h"
#include "disagg/injected_input.h"
#include "server/server_context.h"

namespace transept {

// Empty: there is no such field. Errors (kInvalidArgument, of the field): it does not come from a proxy of the fleet,
// or is no list of `num_prompts`, each null or the first input of a request of its own.
StatusOr<InjectedInputs> injected_inputs(const ServerContext& context, const HttpRequest& request, const Json& body,
                                         size_t num_prompts);

// The same of whomever it comes from: the field alone. REQUIRES: the body is an object.
StatusOr<InjectedInputs> read_injected_inputs(const Json& body, size_t num_prompts);

}  // namespace transept
