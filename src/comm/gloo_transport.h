// Bytes from rank to rank by Gloo: TCP, without any of the library's sums or collectives. The only source that includes
// it is gloo_transport.cc; gloo_communicator.h makes calls of what this sends. A build without its headers has none
// (has_gloo()).
//
// Sends and receives meet by pair and tag, in their order, and must have the same number of bytes: Gloo ends the
// process otherwise. So a tag has the bytes in it, and ranks that have run apart only wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace transept {

bool has_gloo();

// Memory that is sent from, or received into: one of either at a time.
class TransportBuffer {
 public:
  virtual ~TransportBuffer() = default;
  // Begin; never wait. Errors: kUnavailable, the connection is lost.
  virtual Status send(int to, uint32_t tag, size_t bytes) = 0;
  virtual Status recv(int from, uint32_t tag, size_t bytes) = 0;
  // Return when what was begun is over. Errors: kUnavailable, the connection is lost; kDeadlineExceeded, after which
  // every connection is; kCancelled, by abort().
  virtual Status wait_sent(std::optional<Duration> timeout) = 0;
  virtual Status wait_received(std::optional<Duration> timeout) = 0;
  // Ends the wait that is under way, or else the next. Any thread.
  virtual void abort() = 0;
};

// The connections of one rank with all others. One thread at a time, but for TransportBuffer::abort().
class Transport {
 public:
  virtual ~Transport() = default;

  // Where each rank connects to this one: to be given to all ranks (GroupLink::swap).
  virtual std::vector<std::byte> addresses() const = 0;
  // Connects with all; `of_ranks`: addresses() of each, by rank. Errors: kUnavailable; they cannot be read.
  virtual Status connect(const std::vector<std::vector<std::byte>>& of_ranks) = 0;
  // Ends all connections, once what was sent is on its way: buffers are touched by nothing else then. Call before they
  // are given back; nothing else is called after.
  virtual void close() = 0;
  // Borrows the memory, and the transport: give it back before.
  virtual std::unique_ptr<TransportBuffer> buffer(std::byte* data, size_t bytes) = 0;
};

// `address`: of this host, as the others reach it. Errors: kNotFound, Gloo is not installed; kUnimplemented, the build
// has none; kUnavailable, the address cannot be bound.
StatusOr<std::unique_ptr<Transport>> create_gloo_transport(int rank, int size, const std::string& address);

}  // namespace transept
