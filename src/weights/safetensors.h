// The safetensors format (https://huggingface.co/docs/safetensors): 8 bytes little-endian header length N, N bytes of
// JSON `{"name": {"dtype", "shape", "data_offsets": [begin, end]}, ..., "__metadata__": {..}}`, then the data. The
// bytes are untrusted: everything is checked before anything is believed. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace transept {

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr size_t kMaxSafetensorsTensors = 100'000;
inline constexpr size_t kMaxSafetensorsRank = 16;

struct SafetensorsTensor {
  std::string name;
  std::string dtype;  // as the format spells it: "F32", "BF16", "I64"
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // inside the bytes that were parsed
};

// As the format spells it.
std::string_view safetensors_dtype(DType dtype);

// What a file's "__metadata__" says to this program: the members whose keys begin with kOwnMetadata.
inline constexpr std::string_view kOwnMetadata = "transept.";
using SafetensorsMetadata = std::map<std::string, std::string, std::less<>>;

// All tensors of a file, in the order of their data. Views live as long as `bytes`; memory is bounded by the header.
// Errors begin with `file` and name the tensor and the reason: the list at WeightMap::open. metadata: filled, or null.
StatusOr<std::vector<SafetensorsTensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view file,
                                                           SafetensorsMetadata* metadata = nullptr);

// [2, 3] as "[2, 3]", for messages.
std::string shape_text(std::span<const int64_t> shape);

}  // namespace transept
