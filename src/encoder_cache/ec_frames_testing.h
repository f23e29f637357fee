// For tests: frames of every kind, drawn at random, and the comparison of two frames.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "encoder_cache/ec_frame.h"

namespace transept::testing {

using Bytes = std::vector<std::byte>;

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// By value; bytes of chunks too.
inline bool equal(const EcMessage& a, const EcMessage& b) {
  const auto* const chunk = std::get_if<EcChunk>(&a);
  const auto* const other = std::get_if<EcChunk>(&b);
  if (chunk != nullptr && other != nullptr) {
    return chunk->key == other->key && chunk->reservation == other->reservation && chunk->offset == other->offset &&
           chunk->total == other->total && std::ranges::equal(chunk->bytes, other->bytes);
  }
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<typename M>(const M& m) {
        if constexpr (std::equality_comparable<M>) return m == std::get<M>(b);
        return false;
      },
      a);
}
inline bool equal(const EcFrame& a, const EcFrame& b) {
  return a.incarnation == b.incarnation && a.sequence == b.sequence && equal(a.message, b.message);
}

inline Bytes encoded(const EcFrame& frame, const EcSecret* secret) {
  Bytes bytes;
  const Status status = encode_ec_frame(frame, secret, bytes);
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

// Draws frames that are in order. Owns the bytes of the last chunk.
class FrameDrawer final {
 public:
  explicit FrameDrawer(uint64_t seed) : random_(seed) {}

  EcFrame frame() {
    switch (draw(0, 5)) {
      case 0: return {random_(), random_(), meta()};
      case 1: return {random_(), random_(), allocation()};
      case 2: return {random_(), random_(), EcInjection{key(), verdict()}};
      case 3: return {random_(), random_(), chunk()};
      case 4: return {random_(), random_(), EcQuery{key()}};
      default:
        return {random_(), random_(), EcCancel{key(), draw(0, 1) == 0 ? EcChannel::kAllocation : EcChannel::kMetadata}};
    }
  }
  int64_t draw(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }

 private:
  EcVerdict verdict() { return static_cast<EcVerdict>(draw(0, kNumEcVerdicts - 1)); }
  int32_t number(int64_t least, int64_t most) { return static_cast<int32_t>(draw(least, most)); }
  std::string text(std::string_view chars, int64_t most) {
    std::string text(static_cast<size_t>(draw(1, most)), ' ');
    for (char& c : text) c = chars[static_cast<size_t>(draw(0, static_cast<int64_t>(chars.size()) - 1))];
    return text;
  }
  EcKey key() { return {text("AZaz09._:-", 128), static_cast<uint32_t>(random_()), static_cast<uint32_t>(random_())}; }
  EcMeta meta() {
    EcMeta meta;
    meta.key = key();
    for (std::byte& byte : meta.digest.bytes) byte = static_cast<std::byte>(random_());
    for (std::byte& byte : meta.model.bytes) byte = static_cast<std::byte>(random_());
    meta.num_positions = number(1, 1 << 30);
    meta.width = number(1, 1 << 20);
    meta.dtype = draw(0, 1) == 0 ? DType::kFloat32 : DType::kBFloat16;
    meta.place = {number(0, 1 << 30), number(0, meta.num_positions), {}};
    if (draw(0, 1) == 0) meta.place.grid = {number(1, 100), number(1, 1000), number(1, 1000)};
    meta.time_left = std::chrono::microseconds(draw(0, int64_t{1} << 44));
    return meta;
  }
  EcAllocation allocation() {
    EcAllocation allocation{key(), verdict(), 0, ""};
    if (allocation.verdict != EcVerdict::kAllocated) return allocation;
    allocation.reservation = random_() | 1;
    allocation.bulk_address = text("!~/[]:.az09", kMaxEcAddressBytes);
    return allocation;
  }
  EcChunk chunk() {
    rows_.resize(static_cast<size_t>(draw(1, draw(0, 9) == 0 ? 1 << 17 : 300)));
    for (std::byte& byte : rows_) byte = static_cast<std::byte>(random_());
    EcChunk chunk{key(), random_() | 1, random_() >> draw(1, 63), 0, rows_};
    chunk.total = chunk.offset + rows_.size() + (random_() >> draw(2, 63));
    return chunk;
  }

  std::mt19937_64 random_;
  Bytes rows_;
};

}  // namespace transept::testing
