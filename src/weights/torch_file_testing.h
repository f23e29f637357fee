// Writes small files of torch.save for tests: valid ones from tensors, and damaged ones from pickles and entries as
// given. Header-only, so that tests of other folders may use it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace transept::testing {

template <typename T>
std::string number_bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// ---- Pickles, opcode by opcode

inline std::string pickled(std::string_view text) {
  return str_cat("X", number_bytes(static_cast<uint32_t>(text.size())), text);
}
inline std::string pickled(int64_t value) {
  if (value == static_cast<int32_t>(value)) return "J" + number_bytes(static_cast<int32_t>(value));
  return "\x8a\x08" + number_bytes(value);
}
inline std::string pickled(const std::vector<int64_t>& values) {
  std::string out = "(";
  for (const int64_t value : values) out += pickled(value);
  return out + "t";
}
inline std::string global(std::string_view module, std::string_view name) {
  return str_cat("c", module, "\n", name, "\n");
}
inline std::string pickle_of(std::string_view value) { return str_cat("\x80\x02", value, "."); }

struct TestStorage {
  std::string key;
  std::string type;  // "FloatStorage"
  int64_t num_elements = 0;
  std::string data;
};

struct TestTorchTensor {
  std::string name;
  size_t storage = 0;  // its index
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
};

// The persistent id of a storage.
inline std::string storage_id(const TestStorage& storage, bool is_legacy) {
  const std::string id = str_cat("(", pickled("storage"), global("torch", storage.type), pickled(storage.key),
                                 pickled("cpu"), pickled(storage.num_elements));
  return str_cat(id, is_legacy ? "N" : "", "tQ");
}

inline std::string tensor_value(const TestTorchTensor& tensor, const TestStorage& storage, bool is_legacy) {
  return str_cat(global("torch._utils", "_rebuild_tensor_v2"), "(", storage_id(storage, is_legacy),
                 pickled(tensor.offset), pickled(tensor.shape), pickled(tensor.strides), "\x89",
                 global("collections", "OrderedDict"), ")RtR");
}

inline std::string state_dict(const std::vector<TestTorchTensor>& tensors, const std::vector<TestStorage>& storages,
                              bool is_legacy = false) {
  std::string out = global("collections", "OrderedDict") + ")R(";
  for (const TestTorchTensor& tensor : tensors) {
    out += pickled(tensor.name) + tensor_value(tensor, storages[tensor.storage], is_legacy);
  }
  return out + "u";
}

// ---- Zip archives

struct TestEntry {
  std::string name, data;
  uint16_t method = 0, flags = 0x0808;  // as torch: a descriptor behind the data
  bool is_wide = false;                 // sizes in zip64 fields
};

inline std::string zip64_field(uint64_t size) {
  return number_bytes(uint16_t{1}) + number_bytes(uint16_t{16}) + number_bytes(size) + number_bytes(size);
}

inline std::string local_record(const TestEntry& entry) {
  const uint64_t size = entry.data.size();
  const std::string extra = entry.is_wide ? zip64_field(size) : "";
  std::string out = "PK\x03\x04" + number_bytes(uint16_t{0}) + number_bytes(entry.flags) + number_bytes(entry.method) +
                    number_bytes(uint32_t{0}) + number_bytes(uint32_t{0});
  const auto local_size = static_cast<uint32_t>((entry.flags & 8) != 0 ? 0 : size);
  out += number_bytes(local_size) + number_bytes(local_size);
  out += number_bytes(static_cast<uint16_t>(entry.name.size())) + number_bytes(static_cast<uint16_t>(extra.size()));
  out += entry.name + extra + entry.data;
  if ((entry.flags & 8) == 0) return out;
  out += "PK\x07\x08" + number_bytes(uint32_t{0});
  if (entry.is_wide) return out + number_bytes(size) + number_bytes(size);
  return out + number_bytes(static_cast<uint32_t>(size)) + number_bytes(static_cast<uint32_t>(size));
}

inline std::string central_record(const TestEntry& entry, size_t offset) {
  const uint64_t size = entry.data.size();
  const std::string extra = entry.is_wide ? zip64_field(size) : "";
  const uint32_t shown = entry.is_wide ? 0xFFFFFFFF : static_cast<uint32_t>(size);
  std::string out = "PK\x01\x02" + number_bytes(uint32_t{0}) + number_bytes(entry.flags) + number_bytes(entry.method) +
                    number_bytes(uint32_t{0}) + number_bytes(uint32_t{0}) + number_bytes(shown) + number_bytes(shown);
  out += number_bytes(static_cast<uint16_t>(entry.name.size())) + number_bytes(static_cast<uint16_t>(extra.size()));
  out += number_bytes(uint16_t{0}) + number_bytes(uint16_t{0}) + number_bytes(uint16_t{0}) + number_bytes(uint32_t{0});
  return out + number_bytes(static_cast<uint32_t>(offset)) + entry.name + extra;
}

inline std::string end_record(size_t count, size_t size, size_t offset) {
  const auto narrow = static_cast<uint16_t>(count);
  return "PK\x05\x06" + number_bytes(uint32_t{0}) + number_bytes(narrow) + number_bytes(narrow) +
         number_bytes(static_cast<uint32_t>(size)) + number_bytes(static_cast<uint32_t>(offset)) +
         number_bytes(uint16_t{0});
}

inline std::string zip_bytes(const std::vector<TestEntry>& entries) {
  std::string out, directory;
  for (const TestEntry& entry : entries) {
    directory += central_record(entry, out.size());
    out += local_record(entry);
  }
  return out + directory + end_record(entries.size(), directory.size(), out.size());
}

// ---- Whole files

inline std::string torch_zip(std::string_view object, const std::vector<TestStorage>& storages) {
  std::vector<TestEntry> entries = {{"m/data.pkl", pickle_of(object)}, {"m/byteorder", "little"}};
  for (const TestStorage& storage : storages) entries.push_back({"m/data/" + storage.key, storage.data});
  return zip_bytes(entries);
}

inline std::string torch_zip(const std::vector<TestTorchTensor>& tensors, const std::vector<TestStorage>& storages) {
  return torch_zip(state_dict(tensors, storages), storages);
}

inline std::string torch_legacy(std::string_view object, const std::vector<TestStorage>& storages) {
  std::string out("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  out += std::string("\x80\x02M\xe9\x03.", 6) + pickle_of("}" + pickled("little_endian") + "\x88s");
  std::string keys = "](", data;
  for (const TestStorage& storage : storages) {
    keys += pickled(storage.key);
    data += number_bytes(storage.num_elements) + storage.data;
  }
  return out + pickle_of(object) + pickle_of(keys + "e") + data;
}

inline std::string torch_legacy(const std::vector<TestTorchTensor>& tensors, const std::vector<TestStorage>& storages) {
  return torch_legacy(state_dict(tensors, storages, true), storages);
}

}  // namespace transept::testing
