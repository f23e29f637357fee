#include "startup/connect_bulk.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "disagg/redis_bulk.h"
#include "disagg/ucx_bulk.h"
#include "disagg/zmq_bulk.h"
#include "startup/connect_broker.h"

namespace transept {
namespace {

StatusOr<std::unique_ptr<BulkTransport>> connect_redis(const BulkOptions& options,
                                                       std::shared_ptr<FrameWriter> writer) {
  ASSIGN_OR_RETURN(const RedisUrl url, parse_redis_url(options.broker));
  return RedisBulk::create(url, {.self = options.self, .ns = options.ns}, std::move(writer));
}

// Names are not looked up: localhost alone is this machine.
bool is_of_this_machine(std::string host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return host == "localhost";
}

constexpr std::string_view kNeedsSecret =
    "other machines reach it, so --ec-secret-file has to name the secret that all instances share; without one they "
    "believe each other on this machine alone";

StatusOr<std::unique_ptr<BulkTransport>> connect_kind(const BulkOptions& options, const std::string& address,
                                                      std::shared_ptr<FrameWriter> writer) {
  switch (options.kind) {
    case BulkKind::kZmq: return ZmqBulk::create(address, std::move(writer));
    case BulkKind::kBroker: return connect_redis(options, std::move(writer));
    case BulkKind::kUcx: return create_ucx_bulk(address, std::move(writer));
  }
  return invalid_argument("--ec-bulk: unknown");
}

}  // namespace

StatusOr<BulkKind> parse_bulk_kind(const std::string& name) {
  if (name == "zmq") return BulkKind::kZmq;
  if (name == "broker") return BulkKind::kBroker;
  if (name == "ucx") return BulkKind::kUcx;
  return invalid_argument("--ec-bulk ", name, ": unknown; one of zmq, broker, ucx");
}

Status check_bulk(const BulkOptions& options) {
  if (options.kind != BulkKind::kBroker) return ok_status();
  if (is_local_broker(options.broker)) {
    return invalid_argument("--ec-bulk broker: needs --broker redis://..: a broker local:PATH carries no rows");
  }
  if (options.address.empty()) return ok_status();
  return invalid_argument("--ec-bulk-address ", options.address, ": does not go with --ec-bulk broker, by which rows ",
                          "go through the Redis server");
}

Status check_without_secret(const BulkOptions& options) {
  if (options.broker.starts_with("redis")) {  // others are refused, or of this machine
    StatusOr<RedisUrl> url = parse_redis_url(options.broker);
    if (!url.ok()) return with_prefix(url.status(), "--broker");
    if (url->path.empty() && !is_of_this_machine(url->host)) {
      return invalid_argument("--broker ", url->text(), ": ", kNeedsSecret);
    }
  }
  const std::string address = options.address.empty() ? default_bulk_address(options) : options.address;
  const size_t begin = address.find("://"), end = address.rfind(':');
  if (address.starts_with("ipc:") || begin == std::string::npos || end <= begin + 2) return ok_status();
  if (is_of_this_machine(address.substr(begin + 3, end - begin - 3))) return ok_status();
  return invalid_argument(options.address.empty() ? "rows at " : "--ec-bulk-address ", address, ": ", kNeedsSecret);
}

StatusOr<std::unique_ptr<BulkTransport>> connect_bulk(const BulkOptions& options, std::shared_ptr<FrameWriter> writer) {
  RETURN_IF_ERROR(check_bulk(options));
  const std::string address = options.address.empty() ? default_bulk_address(options) : options.address;
  auto bulk = connect_kind(options, address, std::move(writer));
  if (bulk.ok()) return bulk;
  return with_prefix(bulk.status(), options.kind == BulkKind::kZmq ? "--ec-bulk-address" : "--ec-bulk");
}

std::string default_bulk_address(const BulkOptions& options) {
  if (options.kind == BulkKind::kBroker) return "";
  if (options.kind == BulkKind::kZmq && is_local_broker(options.broker)) {
    return str_cat("ipc://", options.broker.substr(options.broker.find(':') + 1), ".", options.self.name);
  }
  const std::string_view url = options.url;
  const size_t begin = std::min(url.find("://"), url.size() - 3) + 3;
  const std::string_view place = url.substr(begin, url.find('/', begin) - begin);
  return str_cat(options.kind == BulkKind::kUcx ? "ucx://" : "tcp://", place.substr(0, place.rfind(':')), ":*");
}

}  // namespace transept
