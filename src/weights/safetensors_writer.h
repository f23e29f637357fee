// Writes a safetensors file that any reader of the format takes, laid out so that its tensors can be used where they
// are mapped: the data begins on a page, and a tensor whose bytes are whole cache lines begins on one.
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

// 8 bytes of length, and JSON padded with spaces to a page. `tensors` are put into the order that their data must have:
// in the order given, but those that are not whole cache lines behind all others.
std::string safetensors_header(std::vector<SafetensorsTensor>& tensors, const SafetensorsMetadata& metadata);

// Writes all of it to a file that must not be there yet, and waits until the disk has it. goes_on: asked now and then;
// false ends it. Errors: the file cannot be made or written (names it and says why; what is there stays), or ended.
Status write_safetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                         const SafetensorsMetadata& metadata, FunctionRef<bool()> goes_on);

}  // namespace transept
