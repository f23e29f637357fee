// Files of torch.save: a state dict and the storages of its tensors. Two forms: a zip archive (PREFIX/data.pkl,
// PREFIX/data/KEY, PREFIX/byteorder), which torch writes since 1.6, and before that the legacy form, which is a row of
// pickles with the storages behind them. The bytes are untrusted: everything is checked before it is used, and nothing
// of a file is run (weights/torch_pickle.h). Pure functions: thread-safe.
//
// Source: torch/serialization.py (torch 2.13), _save, _load, _legacy_save, _legacy_load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "weights/safetensors.h"
#include "weights/torch_pickle.h"

namespace transept {

// A tensor of a file. Several may view the same bytes.
struct StoredTensor {
  // `data` are the bytes from its first element to its last. Dense: in row-major order, and nothing else.
  SafetensorsTensor view;
  // In elements, one for each dimension; empty: dense.
  std::vector<int64_t> strides;
};

// Whether the bytes begin as a file of torch.save does, in either form.
bool begins_as_torch_file(std::span<const std::byte> bytes);

// Returns the tensors of the state dict, in its order. Entries that are no tensors are left out: transformers has no
// use for them either. Views live as long as `bytes`. Errors begin with `file` and name the reason: neither form; those
// of read_zip_directory and TorchPickle::parse (with opcode and offset); no state dict at the top; another byte order;
// by tensor: its storage is missing or has another size, it lies outside it, it is larger than the file, its name
// occurs twice.
StatusOr<std::vector<StoredTensor>> parse_torch_file(std::span<const std::byte> bytes, std::string_view file);

// The object of a file in either form, with its storages unread: for telling what a file is. Errors as above.
StatusOr<TorchPickle> parse_torch_object(std::span<const std::byte> bytes, std::string_view file);

}  // namespace transept
