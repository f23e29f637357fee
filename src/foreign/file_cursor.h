// Reads little-endian numbers and byte strings one after the other from untrusted bytes. Not thread-safe; borrows the
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace transept {

class FileCursor final {
 public:
  explicit FileCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t offset() const { return offset_; }
  size_t left() const { return bytes_.size() - offset_; }

  // nullopt: the bytes end before; nothing is read then.
  template <typename Number>
  std::optional<Number> number() {
    if (left() < sizeof(Number)) return std::nullopt;
    Number value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof value);
    offset_ += sizeof value;
    return value;
  }
  std::optional<std::span<const std::byte>> bytes(uint64_t size) {
    if (left() < size) return std::nullopt;
    const auto found = bytes_.subspan(offset_, static_cast<size_t>(size));
    offset_ += static_cast<size_t>(size);
    return found;
  }
  std::optional<std::string_view> text(uint64_t size) {
    const auto found = bytes(size);
    if (!found.has_value()) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(found->data()), found->size());
  }

 private:
  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
};

}  // namespace transept
