// Where a Redis server is, and as whom to speak to it:
//
//   redis://[:PASSWORD@|USER:PASSWORD@]HOST[:PORT][/DB]        HOST: a name, an IPv4 address, or [an IPv6 address]
//   redis+unix://[:PASSWORD@|USER:PASSWORD@]/PATH[?db=DB]      a Unix socket
//
// User, password and path are percent-encoded. A value; the functions are pure: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

struct RedisUrl {
  std::string path;  // of a Unix socket; empty: host and port
  std::string host;
  uint16_t port = 6379;
  std::string user;      // empty: the server's default user
  std::string password;  // empty: no password is sent
  int32_t db = 0;        // servers have 16, unless they are told otherwise

  bool operator==(const RedisUrl&) const = default;

  // The URL for messages: *** stands for the password.
  std::string text() const;
};

// Errors never echo what they refuse, which may be part of a password. kInvalidArgument, with the field's name (scheme,
// host, port, user, password, path, db); kUnimplemented: rediss://, with what to do.
StatusOr<RedisUrl> parse_redis_url(std::string_view text);

}  // namespace transept
