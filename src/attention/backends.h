// The attention backends by name. Functions, thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "attention/backend.h"
#include "base/status.h"

namespace transept {

// Returns every backend's name, the fastest first.
std::span<const std::string_view> attention_backend_names();

// Returns a new backend, owned by the caller; "auto" is "cpu". kInvalidArgument: unknown name (the message lists the
// known ones).
StatusOr<std::unique_ptr<AttentionBackend>> make_attention_backend(std::string_view name);

}  // namespace transept
