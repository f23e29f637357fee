// Writes files of whisper.cpp for tests. Header-only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foreign/ggml_file.h"

namespace transept::testing {

// The bytes of a file, appended one field after the other.
class GgmlWriter {
 public:
  // In the file's order: n_vocab, n_audio_ctx, .., n_mels, ftype.
  explicit GgmlWriter(std::initializer_list<int32_t> sizes) {
    bytes_ = "lmgg";
    for (const int32_t size : sizes) number(size);
  }

  void filters(int32_t rows, int32_t bins) {
    number(rows);
    number(bins);
    const float value = 0.5f;
    for (int32_t i = 0; i < rows * bins; ++i) bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void tokens(const std::vector<std::string>& tokens) {
    number(static_cast<int32_t>(tokens.size()));
    for (const std::string& token : tokens) {
      number(static_cast<int32_t>(token.size()));
      bytes_ += token;
    }
  }
  // shape: row-major. type: ggml's number.
  void tensor(std::string_view name, const std::vector<int64_t>& shape, int32_t type, std::string_view data) {
    number(static_cast<int32_t>(shape.size()));
    number(static_cast<int32_t>(name.size()));
    number(type);
    for (size_t i = shape.size(); i > 0; --i) number(static_cast<int32_t>(shape[i - 1]));
    bytes_ += name;
    bytes_ += data;
  }
  void number(int32_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }

  const std::string& bytes() const { return bytes_; }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

}  // namespace transept::testing
