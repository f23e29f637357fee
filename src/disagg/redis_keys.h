// The names under which brokers keep things in a Redis server: docs/decisions/0039-redis-broker.md has the list. A
// namespace has no ':' and each kind of key a word of its own before what may have one, so no two keys are equal.
// Values; thread-safe.
#pragma once

#include <span>
#include <string>

#include "base/hex.h"
#include "encoder_cache/broker.h"

namespace transept {

class RedisKeys final {
 public:
  explicit RedisKeys(std::string_view ns) : prefix_(str_cat("transept:", ns, ":")) {}

  std::string instances() const { return str_cat(prefix_, "instances"); }  // set of names
  std::string record(std::string_view name) const { return str_cat(prefix_, "instance:", name); }
  std::string owner(std::string_view name) const { return str_cat(prefix_, "owner:", name); }  // its incarnation
  std::string frames(const InstanceId& id, int channel) const {                                // stream
    return str_cat(prefix_, "frames:", id.name, ":", id.incarnation, ":", channel);
  }
  std::string models() const { return str_cat(prefix_, "models"); }  // set of those that have a stream of tickets
  std::string encode(std::string_view hex_of_model) const {
    return str_cat(prefix_, "encode:", hex_of_model);
  }                                                                          // stream
  std::string input(std::string_view request_id, uint32_t input_id) const {  // its ticket's nonce
    return str_cat(prefix_, "input:", request_id, ":", input_id);
  }
  // A chunk of channel 3, whose name is in an entry of the receiver's frames.
  std::string rows(const EcKey& key, uint64_t offset) const {
    return str_cat(prefix_, kRows, key.request_id, ":", key.input_id, ":", key.attempt, ":", offset);
  }
  bool is_rows(std::string_view key) const { return key.starts_with(str_cat(prefix_, kRows)); }
  std::string probe(uint64_t number) const { return str_cat(prefix_, "probe:", number); }

 private:
  static constexpr std::string_view kRows = "ec:";
  std::string prefix_;
};

inline std::string milliseconds_text(Duration duration) {
  return str_cat(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}
inline std::string bytes_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> text_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace transept
