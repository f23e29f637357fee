// The broker of a --broker URL, for instances, proxies and `transept epd status`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "encoder_cache/broker.h"

namespace transept {

// Connects to local:PATH, of the socket of a launcher's broker, or to a Redis server (disagg/redis_url.h), and waits
// until it answers, `wait` at most: it may be starting. `ns`: --ec-namespace, of several fleets of one server. Errors
// name --broker, and never a password: kInvalidArgument, the URL or the namespace is none; kUnimplemented, rediss://;
// kPermissionDenied; kUnavailable, no broker answers; those of load_zmq() and RedisBroker::connect(). `num_too_large`:
// RedisBroker::Options.
StatusOr<std::shared_ptr<Broker>> connect_broker(const std::string& url, const std::string& ns, Duration wait,
                                                 const std::shared_ptr<std::atomic<int64_t>>& num_too_large = nullptr);

// Whether the broker is of this machine alone.
bool is_local_broker(std::string_view url);

}  // namespace transept
