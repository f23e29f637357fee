// The broker of a --broker URL, for instances, proxies and `transept epd status`.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "encoder_cache/broker.h"

namespace transept {

// Connects to local:PATH, of the socket of a launcher's broker, and waits until it answers, `wait` at most: it may be
// starting. Errors name --broker, and never a password: kInvalidArgument, the URL is none; kUnimplemented, a kind of
// broker that this version lacks; kUnavailable, no broker answers; those of load_zmq().
StatusOr<std::shared_ptr<Broker>> connect_broker(const std::string& url, Duration wait);

}  // namespace transept
