// Any bytes as the address of a transport, which a peer names: refused, or one whose parts are within their limits.
#include <cstdint>
#include <cstdlib>

#include "disagg/redis_bulk.h"
#include "disagg/ucx_address.h"

namespace transept {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_address(std::string_view text) {
  const RedisKeys keys("n");
  if (const auto stream = redis_bulk_stream(keys, text); stream.ok()) {
    require(stream->starts_with("transept:n:frames:") && stream->ends_with(":3"));
    require(stream->size() <= text.size() + 40);
  }
  if (const auto address = UcxAddress::parse(text); address.ok()) {
    const auto again = UcxAddress::parse(address->text());
    require(again.ok() && again->host == address->host && again->port == address->port);
  }
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  transept::read_address({reinterpret_cast<const char*>(data), size});
  return 0;
}
