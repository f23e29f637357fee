// The salt of a request's encoder input and prefixes. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "server/server_context.h"

namespace transept {

// Returns EncoderDecoderInputs::cache_salt by the server's scope, the request's key and its own cache_salt. Errors
// (kUnimplemented): a cache_salt at an instance of a fleet, whose parts tell each other of inputs by digests without
// one.
StatusOr<std::string> cache_salt_of(const ServerContext& context, const HttpRequest& request,
                                    const std::optional<std::string>& own);

}  // namespace transept
