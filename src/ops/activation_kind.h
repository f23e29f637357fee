// The kinds of activations; ops/activation.h defines them. A header without the standard library, because kernel files
// include it (ops/kernels.h).
#pragma once

#include <stdint.h>

namespace transept {

enum class Activation : uint8_t { kNone, kRelu, kGelu, kGeluTanh, kSilu, kTanh, kQuickGelu };

}  // namespace transept
