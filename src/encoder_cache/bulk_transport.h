// What carries chunks (channel 3) from encode instances to decode instances. Implementations: inproc (tests), zmq, ucx,
// and the broker itself; all pass one conformance suite (disagg/bulk_conformance_testing.h).
//
// Thread-safe. Callbacks come on a thread of the transport and must not wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "encoder_cache/connector.h"
#include "encoder_cache/ec_transfer.h"

namespace transept {

class BulkTransport {
 public:
  virtual ~BulkTransport() = default;

  // Where this instance takes chunks, as peers name it. At most kMaxEcAddressBytes; not empty.
  virtual std::string address() const = 0;

  // One output on its way to a peer. `progress` is called as chunks were handed to the network, `done` once: ok means
  // that all were, not that the peer has them (the handshake says that). Chunks keep their order.
  struct Sending {
    EcKey key;
    uint64_t reservation = 0;
    EcRows rows;
    std::function<void()> progress;
    std::function<void(Status)> done;
  };
  virtual void send(std::string_view to, Sending sending) = 0;
  // No further chunk of this input. When it has returned, no callback about it runs or follows: it waits for one that
  // runs, if it is not called by that one.
  virtual void cancel(const EcInput& input) = 0;

  // Each chunk that comes is offered to `take` as a whole frame (ec_frame.h) that was not checked.
  // Call once, before peers send. The transport reads no further frame of a connection until `take` has returned.
  virtual void receive(std::function<void(std::span<const std::byte> frame)> take) = 0;
};

}  // namespace transept
