// GGUF, the form of llama.cpp's models: pairs of a key and a value, and tensors. The bytes are untrusted: everything is
// checked before it is used. Pure functions: thread-safe.
// Source: ggml's docs/gguf.md, versions 2 and 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "weights/block_matrix.h"

namespace transept {

// A value: whole numbers (bool among them), numbers, texts, and lists of these. Lists of bytes are bytes.
using GgufValue = std::variant<int64_t, double, std::string_view, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string_view>, std::span<const std::byte>>;

class GgufFile final {
 public:
  struct Tensor {
    std::string_view name;
    std::vector<int64_t> shape;  // row-major: the file's dimensions in reverse
    std::string_view dtype;      // "F32", "F16", "BF16", or that of its blocks
    std::optional<BlockType> blocks;
    std::span<const std::byte> data;
  };

  // Views live as long as `bytes`. Errors begin with `file` and name the key or tensor and the reason: no GGUF, or
  // another version; a file that ends early; over 65,536 keys, 10,000 tensors, 4,194,304 values of a list; a text of
  // over 64 MiB; lists of lists; a key that is there twice; an alignment that is no power of two from 8 to 65,536; a
  // tensor of another type, of over 4 dimensions, whose rows are no whole blocks, that lies outside the file, off the
  // alignment, or over another one.
  static StatusOr<GgufFile> parse(std::span<const std::byte> bytes, std::string_view file);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  bool has(std::string_view key) const { return values_.contains(key); }

  // Errors: kInvalidArgument, naming file and key: missing without a fallback; another kind; out of range.
  StatusOr<int64_t> integer(std::string_view key, int64_t least, int64_t most,
                            std::optional<int64_t> fallback = std::nullopt) const;
  StatusOr<double> number(std::string_view key, double least, double most,
                          std::optional<double> fallback = std::nullopt) const;
  StatusOr<std::string_view> text(std::string_view key) const;
  // Null: there is none. Errors: another kind.
  StatusOr<const std::vector<std::string_view>*> texts(std::string_view key) const;
  StatusOr<const std::vector<double>*> numbers(std::string_view key) const;
  StatusOr<const std::vector<int64_t>*> integers(std::string_view key) const;
  StatusOr<std::span<const std::byte>> bytes(std::string_view key) const;  // empty: there are none

  Status error(std::string_view key, std::string_view reason) const;

 private:
  template <typename Value>
  StatusOr<const Value*> find(std::string_view key, std::string_view kind) const;

  friend class GgufParser;
  std::string file_;
  std::map<std::string_view, GgufValue> values_;
  std::vector<Tensor> tensors_;
};

// general.architecture of a file's first bytes; nullopt: they are no GGUF's, or do not reach so far.
std::optional<std::string_view> gguf_architecture(std::span<const std::byte> bytes);

}  // namespace transept
