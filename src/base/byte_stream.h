// Encodes numbers and lists as bytes, and decodes untrusted bytes: messages between processes are made of these
// (rank/plan_codec.h). Little-endian. Integers are varints (seven bits a byte, lowest first; signed ones are zigzag,
// as in Protocol Buffers). A list is its size, then its elements; a list of int32 packs its elements in 1, 2 or 4 bytes
// each, the narrowest unsigned width that holds all of them (so 4 where one is negative).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace transept {

inline constexpr int kMaxVarintBytes = 10;
static_assert(std::endian::native == std::endian::little, "lists of numbers are copied as they lie");

// Appends to a buffer and reuses its memory. While the writer lives, the buffer is longer than the written bytes; the
// destructor cuts it. Not thread-safe.
class ByteWriter final {
 public:
  // Borrows `out`; appends after its present content.
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out), size_(out.size()) {}
  ~ByteWriter() { out_.resize(size_); }
  ByteWriter(const ByteWriter&) = delete;
  ByteWriter& operator=(const ByteWriter&) = delete;

  void varint(uint64_t value) {
    std::byte* to = room(kMaxVarintBytes);
    for (; value >= 0x80; value >>= 7) *to++ = static_cast<std::byte>(value | 0x80);
    *to++ = static_cast<std::byte>(value);
    size_ = static_cast<size_t>(to - out_.data());
  }
  void zigzag(int64_t value) { varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63)); }
  void flag(bool value) { raw(&value, 1); }
  void float32(float value) { raw(&value, sizeof value); }
  void float64(double value) { raw(&value, sizeof value); }
  void ints(std::span<const int32_t> values);
  void floats(std::span<const float> values);
  void bytes(std::span<const std::byte> value) {  // a size, then they
    varint(value.size());
    raw(value.data(), value.size());
  }

 private:
  template <typename T>
  void packed(std::span<const int32_t> values);
  // Returns the place of the next bytes, with room for `size` of them.
  std::byte* room(size_t size) {
    if (out_.size() - size_ < size) grow(size);
    return out_.data() + size_;
  }
  void grow(size_t size);
  void raw(const void* data, size_t size) {
    if (size == 0) return;
    std::memcpy(room(size), data, size);
    size_ += size;
  }

  std::vector<std::byte>& out_;
  size_t size_;
};

// Reads what a ByteWriter wrote. The first value that is missing or invalid fails the reader: every later value is 0,
// false or empty, and status() keeps that first error (kInvalidArgument; names the message, the byte and the value).
// Varints must have their shortest form and lists their narrowest width. No list takes more memory than a constant
// times its bytes. Not thread-safe.
class ByteReader final {
 public:
  // Borrows both. `what` is the name of the message in errors.
  ByteReader(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  // `name` is the name of the value in errors.
  uint64_t varint(std::string_view name) {
    if (at_ < bytes_.size() && bytes_[at_] < std::byte{0x80}) return static_cast<uint64_t>(bytes_[at_++]);
    return long_varint(name);
  }
  int64_t zigzag(std::string_view name);
  // Reads a zigzag number. Fails if it does not fit in T.
  template <typename T>
  T integer(std::string_view name) {
    static_assert(std::is_signed_v<T>);
    const int64_t value = zigzag(name);
    if (value == static_cast<T>(value)) return static_cast<T>(value);
    fail(name, "is out of range");
    return 0;
  }
  bool flag(std::string_view name);
  float float32(std::string_view name) { return number<float>(name); }
  double float64(std::string_view name) { return number<double>(name); }
  // Replace the content of `out`; leave it empty after an error.
  void ints(std::string_view name, std::vector<int32_t>& out);
  void floats(std::string_view name, std::vector<float>& out);
  std::span<const std::byte> bytes(std::string_view name) {  // borrowed from the message
    const size_t size = count(name, 1);
    const std::byte* at = take(name, size);
    return at == nullptr ? std::span<const std::byte>() : std::span(at, size);
  }
  // Reads the size of a list whose elements take at least `least_bytes` each. Fails if the bytes left cannot hold it.
  size_t count(std::string_view name, size_t least_bytes);

  size_t num_left() const { return bytes_.size() - at_; }
  bool ok() const { return error_.ok(); }
  const Status& status() const { return error_; }
  // Fails the reader by a rule of the caller. Keeps the first error.
  void fail(std::string_view name, std::string_view why);

 private:
  uint64_t long_varint(std::string_view name);
  template <typename T>
  void unpack(size_t count, std::vector<int32_t>& out);
  template <typename T>
  T number(std::string_view name) {
    T value = 0;
    if (const std::byte* at = take(name, sizeof value); at != nullptr) std::memcpy(&value, at, sizeof value);
    return value;
  }
  const std::byte* take(std::string_view name, size_t size) {  // null: too few bytes
    if (size > num_left()) {
      fail(name, "is cut off");
      return nullptr;
    }
    at_ += size;
    return bytes_.data() + at_ - size;
  }

  std::span<const std::byte> bytes_;
  std::string_view what_;
  size_t at_ = 0;
  Status error_;
};

}  // namespace transept
