// The pickles of torch.save, read as data. This is a parser and no unpickler: of pickle's machine it knows only how the
// values of a state dict are spelled (protocol 2). Names (GLOBAL) come from a fixed table (weights/torch_names.h); a
// call (REDUCE) is one of four functions that describe a tensor or an empty dict, and becomes a record. So nothing of a
// file can run. Everything else is an error with opcode and offset.
//
// Source: torch/_weights_only_unpickler.py and torch/_utils.py (torch 2.13), Python's pickletools.py.
//
// TorchPickle owns its records and borrows the bytes. Immutable after parse(): thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "weights/pickle_stack.h"

namespace transept {

inline constexpr size_t kMaxPickleBytes = size_t{64} << 20;
inline constexpr size_t kMaxPickleStringBytes = size_t{1} << 20;
inline constexpr size_t kMaxPickleTensors = 100'000;  // and as many references to storages
inline constexpr size_t kMaxPickleRank = 16;

// Where a tensor's elements lie, as a persistent id describes it. 0 <= begin <= end <= num_elements; nothing else is
// checked.
struct PickledStorage {
  std::string_view key;
  std::string_view dtype;  // as safetensors spells it ("F32"); of untyped storages "U8"
  int64_t num_elements = 0;
  // The part that is used. Only the legacy form has parts.
  int64_t begin = 0;
  int64_t end = 0;
};

// A tensor over a storage, in elements of `dtype`. shape and strides have one size, at most kMaxPickleRank; offset,
// shape and strides are at least 0. Whether it lies inside the storage is not checked.
struct PickledTensor {
  PickledStorage storage;
  std::string_view dtype;
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
};

class TorchPickle final {
 public:
  // Reads one pickle from the beginning of `bytes`, up to its STOP. Errors name opcode and offset.
  static StatusOr<TorchPickle> parse(std::span<const std::byte> bytes);

  size_t num_bytes() const { return num_bytes_; }  // of the pickle, the STOP included
  const PickleValue& root() const { return root_; }

  // The elements of a tuple or a list; of a dict keys and values in turn, in the order of the file.
  // REQUIRES: value.is_container().
  std::span<const PickleValue> items(const PickleValue& value) const { return containers_[value.index()]; }
  // REQUIRES: kTensor.
  const PickledTensor& tensor(const PickleValue& value) const { return tensors_[value.index()]; }
  // Every storage that the pickle refers to, as often as it does.
  std::span<const PickledStorage> storages() const { return storages_; }

  // The value of a key of a dict, the last one if it stands there twice; null: no dict, or no such key.
  const PickleValue* find(const PickleValue& dict, std::string_view key) const;

 private:
  friend class PickleParser;

  size_t num_bytes_ = 0;
  PickleValue root_;
  PickleContainers containers_;
  std::vector<PickledStorage> storages_;
  std::vector<PickledTensor> tensors_;
};

}  // namespace transept
