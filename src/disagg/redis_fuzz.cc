// Any bytes as what a Redis server answers, and as what lies in it: refused, or a ticket or record that comes back when
// it is written again. And as a URL: refused, or one whose text is a URL of the same place.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "disagg/local_codec.h"
#include "disagg/redis_library.h"
#include "disagg/redis_url.h"
#include "disagg/redis_value.h"

namespace transept {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_stored(std::span<const std::byte> bytes) {
  std::vector<std::byte> again;
  if (const auto ticket = decode_ticket(bytes); ticket.ok()) {
    encode_ticket(*ticket, again);
    require(decode_ticket(again).value() == *ticket);
  }
  if (const auto record = decode_instance_record(bytes); record.ok()) {
    encode_instance_record(*record, again);
    require(decode_instance_record(again).value() == *record);
  }
}

void read_replies(std::string_view text) {
  if (!load_redis().ok()) return;
  RedisReader reader;
  if (!reader.feed(text).ok()) return;
  while (true) {
    const auto value = reader.next();
    if (!value.ok() || !value->has_value()) return;
    (void)redis_status(**value);
    (void)redis_consumers(**value);
    (void)redis_integer(**value);
    (void)redis_number((*value)->text);
    if (const auto pending = redis_pending(**value); pending.ok() && pending->has_value()) {
      require((*pending)->idle_ms >= 0 && (*pending)->num_deliveries >= 0);
    }
    for (const auto& entries : {redis_entries(**value), redis_stream_entries(**value)}) {
      if (!entries.ok()) continue;
      for (const RedisEntry& entry : *entries) read_stored(std::as_bytes(std::span(entry.field("ticket"))));
    }
  }
}

void read_url(std::string_view text) {
  const auto url = parse_redis_url(text);
  if (!url.ok() || !url->password.empty()) return;
  const auto again = parse_redis_url(url->text());
  if (!url->path.empty()) return;  // its text is not encoded
  require(again.ok() && again->host == url->host && again->port == url->port && again->db == url->db);
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  transept::read_stored(std::as_bytes(std::span(text)));
  transept::read_replies(text);
  transept::read_url(text);
  return 0;
}
