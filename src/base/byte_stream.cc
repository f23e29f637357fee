#include "base/byte_stream.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"

namespace transept {
namespace {

constexpr size_t kLeastBuffer = 4096;

// The bytes that each of `values` takes: 1, 2 or 4.
size_t width_of(std::span<const int32_t> values) {
  uint32_t all = 0;
  for (const int32_t value : values) all |= static_cast<uint32_t>(value);
  return all <= std::numeric_limits<uint8_t>::max() ? 1 : all <= std::numeric_limits<uint16_t>::max() ? 2 : 4;
}

}  // namespace

// By what was written, not by the buffer's capacity: one large message would make every later one clear as much.
void ByteWriter::grow(size_t size) { out_.resize(std::max({size_ + size, 2 * size_, kLeastBuffer})); }

template <typename T>
void ByteWriter::packed(std::span<const int32_t> values) {
  std::byte* to = room(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto narrow = static_cast<T>(values[i]);
    std::memcpy(to + i * sizeof(T), &narrow, sizeof narrow);
  }
  size_ += values.size() * sizeof(T);
}

void ByteWriter::ints(std::span<const int32_t> values) {
  const size_t width = width_of(values);
  varint(values.size());
  if (values.empty()) return;
  const auto tag = static_cast<std::byte>(width);
  raw(&tag, 1);
  if (width == 1) packed<uint8_t>(values);
  if (width == 2) packed<uint16_t>(values);
  if (width == 4) packed<int32_t>(values);
}

void ByteWriter::floats(std::span<const float> values) {
  varint(values.size());
  raw(values.data(), values.size_bytes());
}

void ByteReader::fail(std::string_view name, std::string_view why) {
  if (ok()) error_ = invalid_argument(what_, ": byte ", at_, ": ", name, " ", why);
  at_ = bytes_.size();  // there is nothing left to read
}

uint64_t ByteReader::long_varint(std::string_view name) {
  uint64_t value = 0;
  for (int i = 0; i < kMaxVarintBytes; ++i) {
    const std::byte* at = take(name, 1);
    if (at == nullptr) return 0;
    const auto byte = static_cast<uint64_t>(*at);
    // One number has one form: the tenth byte holds one bit, and no other ends in a zero byte.
    if ((i == kMaxVarintBytes - 1 && byte > 1) || (i > 0 && byte == 0)) break;
    value |= (byte & 0x7F) << (7 * i);
    if (byte < 0x80) return value;
  }
  fail(name, "is no number");
  return 0;
}

int64_t ByteReader::zigzag(std::string_view name) {
  const uint64_t value = varint(name);
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

bool ByteReader::flag(std::string_view name) {
  const std::byte* at = take(name, 1);
  if (at == nullptr) return false;
  if (*at > std::byte{1}) fail(name, "is neither 0 nor 1");
  return *at == std::byte{1};
}

size_t ByteReader::count(std::string_view name, size_t least_bytes) {
  const uint64_t count = varint(name);
  if (ok() && count > num_left() / least_bytes) fail(name, "has more elements than there are bytes for");
  return ok() ? static_cast<size_t>(count) : 0;
}

template <typename T>
void ByteReader::unpack(size_t count, std::vector<int32_t>& out) {
  const std::byte* from = bytes_.data() + at_ - count * sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    T narrow;
    std::memcpy(&narrow, from + i * sizeof(T), sizeof narrow);
    out[i] = static_cast<int32_t>(narrow);
  }
}

void ByteReader::ints(std::string_view name, std::vector<int32_t>& out) {
  out.clear();
  const size_t size = count(name, 1);
  if (size == 0) return;
  const std::byte* width_at = take(name, 1);
  const size_t width = width_at == nullptr ? 0 : static_cast<size_t>(*width_at);
  if (width != 1 && width != 2 && width != 4) return fail(name, "has elements of no known width");
  if (size > num_left() / width) return fail(name, "has more elements than there are bytes for");
  take(name, size * width);
  out.resize(size);
  if (width == 1) unpack<uint8_t>(size, out);
  if (width == 2) unpack<uint16_t>(size, out);
  if (width == 4) unpack<int32_t>(size, out);
  if (width_of(out) == width) return;
  out.clear();
  fail(name, "is packed wider than it needs");
}

void ByteReader::floats(std::string_view name, std::vector<float>& out) {
  out.clear();
  const size_t size = count(name, sizeof(float));
  const std::byte* from = take(name, size * sizeof(float));
  if (from == nullptr || size == 0) return;
  out.resize(size);
  std::memcpy(out.data(), from, size * sizeof(float));
}

}  // namespace transept
