// Any bytes as a frame: refused, or a frame whose bytes are these. Then as a stream, in pieces: the same frames. Bits
// of the first byte: 1, the size and the checksum are made right first, which no fuzzer guesses; 2, there is a secret,
// and with 1 the code is made right, too; the rest is the size of pieces.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "encoder_cache/ec_frame_stream.h"

namespace transept {
namespace {

using Bytes = std::vector<std::byte>;

void require(bool condition) {
  if (!condition) std::abort();
}

const EcSecret& the_secret() {  // that of tests/fuzz/ec_frame_fuzz
  constexpr std::string_view kSecret = "a secret of tests";
  static const EcSecret secret(std::as_bytes(std::span(kSecret)));
  return secret;
}

template <typename T>
void put(Bytes& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

void repair(Bytes& bytes, const EcSecret* secret) {
  if (bytes.size() < kEcHeadBytes) return;
  const auto body = std::span<const std::byte>(bytes).subspan(kEcHeadBytes);
  put(bytes, 8, static_cast<uint32_t>(body.size()));
  put(bytes, 12, crc32c(body));
  put(bytes, 32, EcMac{});
  if (secret == nullptr) return;
  auto [begin, size] = std::pair(body.size(), size_t{0});
  if (bytes[6] == std::byte{3}) std::tie(begin, size) = find_ec_chunk_bytes(body);
  put(bytes, 32, secret->mac({std::span(bytes).first(32), body.first(begin), body.subspan(begin + size)}));
}

// The frame's bytes, and those of what they say, are one frame.
void check_frame(const EcFrame& frame, std::span<const std::byte> bytes, const EcSecret* secret) {
  Bytes again, once_more;
  require(encode_ec_frame(frame, secret, again).ok());
  require(again.size() <= bytes.size());
  // Fields that this version does not know may follow those it knows.
  require(again.size() < bytes.size() || std::ranges::equal(again, bytes));
  const auto decoded = decode_ec_frame(again, secret);
  require(decoded.ok());
  require(encode_ec_frame(*decoded, secret, once_more).ok() && once_more == again);
}

void check_stream(std::span<const std::byte> bytes, size_t most, const EcSecret* secret) {
  EcFrameStream stream(secret);
  size_t num_taken = 0, frame_begin = 0;
  while (num_taken < bytes.size()) {
    auto piece = bytes.subspan(num_taken, std::min(most, bytes.size() - num_taken));
    const size_t before = piece.size();
    const auto frame = stream.take(piece);
    num_taken += before - piece.size();
    require(stream.capacity() <= std::min(kMaxEcFrameBytes, std::max(kEcHeadBytes, 2 * bytes.size())));
    if (stream.is_broken()) {
      require(!frame.ok() && !decode_ec_head(bytes.subspan(frame_begin)).ok());
      require(!stream.take(piece).ok());
      return;
    }
    if (frame.ok() && !frame->has_value()) {
      require(piece.empty() && stream.num_kept() == num_taken - frame_begin);
      continue;
    }
    const auto whole = bytes.subspan(frame_begin, num_taken - frame_begin);
    require(decode_ec_frame(whole, secret).status() == frame.status());
    if (frame.ok()) check_frame(**frame, whole, secret);
    frame_begin = num_taken;
  }
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  if (size == 0) return 0;
  const auto given = std::as_bytes(std::span(data, size)).subspan(1);
  Bytes bytes(given.begin(), given.end());
  const EcSecret* const secret = (data[0] & 2) != 0 ? &the_secret() : nullptr;
  if ((data[0] & 1) != 0) repair(bytes, secret);
  const auto frame = decode_ec_frame(bytes, secret);
  if (frame.ok()) {
    check_frame(*frame, bytes, secret);
  } else {
    require(!name(ec_frame_fault(frame.status())).empty());
  }
  check_stream(bytes, size_t{1} + (data[0] >> 2), secret);
  return 0;
}
