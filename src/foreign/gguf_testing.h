// Writes GGUF files for tests. Header-only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foreign/gguf_file.h"

namespace transept::testing {

// Pairs and tensors in the order in which they are given; bytes() is the whole file.
class GgufWriter {
 public:
  static constexpr uint32_t kUint32 = 4, kFloat32 = 6, kBool = 7, kString = 8, kList = 9, kUint64 = 10;

  template <typename Number>
  void raw(std::string_view key, uint32_t type, Number value) {
    head(key, type);
    append(pairs_, value);
  }
  void number(std::string_view key, uint32_t value) { raw(key, kUint32, value); }
  void real(std::string_view key, float value) { raw(key, kFloat32, value); }
  void text(std::string_view key, std::string_view value) {
    head(key, kString);
    append_text(pairs_, value);
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    list(key, kString, values.size());
    for (const std::string& value : values) append_text(pairs_, value);
  }
  template <typename Number>
  void numbers(std::string_view key, uint32_t type, const std::vector<Number>& values) {
    list(key, type, values.size());
    for (const Number value : values) append(pairs_, value);
  }
  // shape: row-major. type: ggml's number.
  void tensor(std::string_view name, const std::vector<int64_t>& shape, uint32_t type, std::string_view data) {
    place(name, shape, type, data_.size());
    data_ += data;
    data_.resize((data_.size() + 31) / 32 * 32);
  }
  // A tensor whose data are said to lie at `offset`.
  void place(std::string_view name, const std::vector<int64_t>& shape, uint32_t type, uint64_t offset) {
    ++num_tensors_;
    append_text(tensors_, name);
    append(tensors_, static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i > 0; --i) append(tensors_, static_cast<uint64_t>(shape[i - 1]));
    append(tensors_, type);
    append(tensors_, offset);
  }

  std::string bytes(uint32_t version = 3) const {
    std::string file = "GGUF";
    append(file, version);
    append(file, num_tensors_);
    append(file, num_pairs_);
    file += pairs_ + tensors_;
    file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }

 private:
  template <typename Number>
  static void append(std::string& to, Number value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void append_text(std::string& to, std::string_view text) {
    append(to, static_cast<uint64_t>(text.size()));
    to += text;
  }
  void head(std::string_view key, uint32_t type) {
    ++num_pairs_;
    append_text(pairs_, key);
    append(pairs_, type);
  }
  void list(std::string_view key, uint32_t type, size_t size) {
    head(key, kList);
    append(pairs_, type);
    append(pairs_, static_cast<uint64_t>(size));
  }

  std::string pairs_, tensors_, data_;
  uint64_t num_pairs_ = 0, num_tensors_ = 0;
};

}  // namespace transept::testing
