// Any bytes as a message of a local broker, either way: refused, or a message whose bytes are these.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "disagg/local_codec.h"

namespace transept {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace transept;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  std::vector<std::byte> again;
  if (const auto request = decode_local_request(bytes); request.ok()) {
    encode_local_request(*request, again);
    require(std::ranges::equal(again, bytes));
  }
  if (const auto reply = decode_local_reply(bytes); reply.ok()) {
    encode_local_reply(*reply, again);
    // An ok status has no message, whatever came with it.
    if (!reply->status.ok() || reply->kind == LocalReply::Kind::kDelivery) require(std::ranges::equal(again, bytes));
  }
  return 0;
}
