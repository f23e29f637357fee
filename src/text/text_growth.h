// What bounds how long the rules of a tokenizer's file may make a text. Pure: thread-safe.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace transept {

// Whether a text of `size` bytes that came of one of `original_size` has outgrown what honest tokenizer files do.
bool grew_too_much(size_t original_size, size_t size);
Status grew_too_much_error();

}  // namespace transept
