#include "disagg/ucx_address.h"

#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace transept {
namespace {

constexpr std::string_view kScheme = "ucx://";

}  // namespace

StatusOr<UcxAddress> UcxAddress::parse(std::string_view text) {
  const auto wrong = [&] { return invalid_argument("address ", text, ": is not ucx://HOST:PORT"); };
  if (!text.starts_with(kScheme)) return wrong();
  const std::string_view place = text.substr(kScheme.size());
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong();
  UcxAddress address{std::string(place.substr(0, colon))};
  if (address.host.find(':') != std::string::npos && (!address.host.starts_with('[') || !address.host.ends_with(']'))) {
    return wrong();
  }
  const std::string_view port = place.substr(colon + 1);
  if (port == "*") return address;
  const auto read = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || read.ec != std::errc() || read.ptr != port.data() + port.size() || address.port == 0) {
    return wrong();
  }
  return address;
}

StatusOr<sockaddr_storage> UcxAddress::resolve() const {
  const std::string bare = host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(bare.c_str(), str_cat(port).c_str(), &hints, &found);
  if (code != 0) return absl::UnavailableError(str_cat("address ", text(), ": ", ::gai_strerror(code)));
  sockaddr_storage address{};
  std::memcpy(&address, found->ai_addr, std::min<size_t>(found->ai_addrlen, sizeof address));
  ::freeaddrinfo(found);
  return address;
}

}  // namespace transept
