// Writes a safetensors file that any reader of the format accepts. Its layout lets tensors be used from the mapping:
// the data begins on a page, and a tensor whose bytes are whole cache lines begins on one. Functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "weights/safetensors.h"

namespace transept {

// Returns the 8 bytes of length, and JSON padded with spaces to a page. Sorts `tensors` into the order of their data:
// as given, but those that are not whole cache lines come last.
std::string safetensors_header(std::vector<SafetensorsTensor>& tensors, const SafetensorsMetadata& metadata);

// Writes the whole file, which must not exist, and waits until it is on disk. goes_on: called now and then; false
// cancels. Errors: the file cannot be created or written (names it and the reason; what was written stays), or
// cancelled.
Status write_safetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                         const SafetensorsMetadata& metadata, FunctionRef<bool()> goes_on);

}  // namespace transept
