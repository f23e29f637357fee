// Writes small safetensors files for tests: valid ones from tensors, damaged ones from a given header. Header-only, so
// that tests of other folders may use it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

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

}  // namespace transept::testing
