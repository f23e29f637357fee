// What a pickle of weights may name (GLOBAL): storages and types of elements, and the functions that describe tensors.
// Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace transept {

enum class TorchNameKind : uint8_t {
  kOrderedDict,
  kRebuildTensor,
  kRebuildTensorV3,
  kRebuildParameter,
  kStorage,
  kDType
};

struct TorchName {
  std::string_view module, name;
  TorchNameKind kind;
  std::string_view dtype = {};  // kStorage, kDType: as safetensors spells it
};

// All names.
std::span<const TorchName> torch_names();

// The row of a name in torch_names(); nullopt: it is none that weights need.
std::optional<size_t> find_torch_name(std::string_view module, std::string_view name);

// "GLOBAL"; "" for a byte that is no opcode of any protocol.
std::string_view pickle_opcode_name(uint8_t opcode);

}  // namespace transept
