// Writes small safetensors files for tests: valid ones from tensors, damaged ones from a given header; and reads them.
// Header-only, so that tests of other folders may use it.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/mmap_file.h"
#include "base/strings.h"
#include "weights/safetensors.h"

namespace transept::testing {

struct TestTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string data;  // raw little-endian bytes
};

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// The 8 bytes of length, then header and data as given.
inline std::string raw_safetensors(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file.append(header).append(data);
}

inline std::string safetensors_bytes(const std::vector<TestTensor>& tensors) {
  std::string header = R"({"__metadata__": {"format": "pt"})";
  std::string data;
  for (const TestTensor& tensor : tensors) {
    std::string shape;
    for (const int64_t dim : tensor.shape) shape += str_cat(shape.empty() ? "" : ", ", dim);
    const size_t begin = data.size();
    data += tensor.data;
    header += str_cat(", \"", tensor.name, "\": {\"dtype\": \"", tensor.dtype, "\", \"shape\": [", shape,
                      "], \"data_offsets\": [", begin, ", ", data.size(), "]}");
  }
  return raw_safetensors(header + "}", data);
}

// All tensors of a folder, whatever its shards.
inline std::vector<TestTensor> read_tensors(const std::string& folder) {
  std::vector<TestTensor> tensors;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto file = MmapFile::open(entry.path().string());
    const auto views = parse_safetensors((*file)->bytes(), "file");
    for (const SafetensorsTensor& view : *views) {
      const std::string_view bytes(reinterpret_cast<const char*>(view.data.data()), view.data.size());
      tensors.push_back({view.name, std::string(view.dtype), view.shape, std::string(bytes)});
    }
  }
  return tensors;
}

}  // namespace transept::testing
