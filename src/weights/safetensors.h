// The safetensors format (https://huggingface.co/docs/safetensors): 8 bytes little-endian header length N, N bytes of
// JSON `{"name": {"dtype", "shape", "data_offsets": [begin, end]}, ..., "__metadata__": {..}}`, then the data. The
// bytes are untrusted: everything is checked before it is used. Pure functions: thread-safe.
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
  std::span<const std::byte> data;  // inside the parsed bytes
};

// The format's spelling of the type.
std::string_view safetensors_dtype(DType dtype);

// Bytes of an element of a type that the format names, 0: none that is known (types of less than a byte have no bytes
// of their own).
int64_t safetensors_dtype_bytes(std::string_view dtype);

// The members of a file's "__metadata__" for this program: those whose keys begin with kOwnMetadata.
inline constexpr std::string_view kOwnMetadata = "transept.";
using SafetensorsMetadata = std::map<std::string, std::string, std::less<>>;

// Returns all tensors of a file, in the order of their data. Views live as long as `bytes`; the header bounds the
// memory. `metadata` is filled unless null. Errors begin with `file` and name the tensor and the reason: a header over
// 100 MB, not JSON, or not beginning with '{'; over 100,000 tensors; offsets that are not contiguous from 0 or do not
// end with the file; a size that is not shape x dtype; an unsupported dtype; a repeated tensor.
StatusOr<std::vector<SafetensorsTensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view file,
                                                           SafetensorsMetadata* metadata = nullptr);

// [2, 3] as "[2, 3]", for messages.
std::string shape_text(std::span<const int64_t> shape);

}  // namespace transept
