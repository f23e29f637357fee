// Limits how much the rules of a tokenizer's file may lengthen a text. Functions, thread-safe.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace transept {

// Whether a text of `original_size` bytes that became `size` bytes is beyond what honest files do: over 32 times as
// long and over 64 KiB, or over 256 MiB.
bool grew_too_much(size_t original_size, size_t size);
// kResourceExhausted.
Status grew_too_much_error();

}  // namespace transept
