// Where a transport over UCX takes chunks, as flags and peers name it. A value; parse() is pure: thread-safe.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

// ucx://HOST:PORT; as a flag also ucx://HOST:*, any port. HOST: a name, an IPv4 address, or [an IPv6 address].
struct UcxAddress {
  std::string host;   // as it was written, with brackets
  uint16_t port = 0;  // 0: any

  // Errors: kInvalidArgument, with the address.
  static StatusOr<UcxAddress> parse(std::string_view text);
  // Waits for the lookup of a name. Errors: kUnavailable, there is no such host.
  StatusOr<sockaddr_storage> resolve() const;
  std::string text() const { return str_cat("ucx://", host, ":", port == 0 ? "*" : str_cat(port)); }
};

}  // namespace transept
