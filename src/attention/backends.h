// Which attention backends there are.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "attention/backend.h"
#include "base/status.h"

namespace transept {

// Every backend's name, the fastest first.
std::span<const std::string_view> attention_backend_names();

// Errors: unknown name (lists the known ones). "auto" is the fastest that serves the device.
StatusOr<std::unique_ptr<AttentionBackend>> make_attention_backend(std::string_view name);

}  // namespace transept
