// What the ranks of a group give each other while they run one model together: parts of products, rows from stage to
// stage, a common start and end. Only bytes travel: sums are the caller's (comm/reduce.h), in an order of its own, so
// that they do not depend on the way that the bytes took.
//
// All ranks make the same calls in the same order; calls are numbered, and ranks that have run apart are told so by the
// number. A call waits for the other ranks, up to a time. After an error every call of every rank returns that error:
// a group fails as one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/status.h"

namespace transept {

// Implementations: one thread at a time, but for fail(), failure() and times().
class Communicator {
 public:
  static constexpr int kMaxRanks = 64;
  static constexpr size_t kMostAhead = 64;

  // What each rank gave, by rank. Valid until this rank's next exchange(), broadcast() or barrier().
  using Parts = std::span<const std::span<const std::byte>>;

  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The most bytes of an exchange.
  virtual size_t max_bytes() const = 0;

  // Where this rank writes its part of the next exchange: kernels store sums right here. Aligned to 64 bytes. Parts of
  // the last exchange stay as they are. REQUIRES: bytes <= max_bytes().
  virtual std::span<std::byte> outbox(size_t bytes) = 0;
  // Gives the first `bytes` of the outbox to all ranks, and waits for theirs, of as many bytes.
  virtual StatusOr<Parts> exchange(size_t bytes) = 0;
  // Fills `data` of all ranks with that of rank `root`. Any number of bytes, the same on all ranks.
  virtual Status broadcast(std::span<std::byte> data, int root) = 0;
  // Returns when all ranks have called it.
  virtual Status barrier() = 0;

  // A message to one rank, and from one: each recv() takes the next message, whose size it says. send() returns when
  // the message is on its way, which may be before it is taken. It does not wait for that while the messages to this
  // rank that were not taken, with it, are of mailbox_bytes() at most (32 bytes more for each), and kMostAhead at most.
  // Any number of bytes. REQUIRES: the other is another rank.
  virtual Status send(int to, std::span<const std::byte> data) = 0;
  virtual Status recv(int from, std::span<std::byte> data) = 0;
  virtual size_t mailbox_bytes() const = 0;

  // Returns when a message of that rank can be taken, however long it takes: for ranks that wait for work. Without an
  // error only then.
  virtual Status await(int from) = 0;

  // For how long the calls that follow wait for another rank, but for await(): loading takes longer than steps.
  virtual void set_rank_timeout(Duration timeout) = 0;

  // Whether the calls that follow may spin before they sleep. False: other threads want this one's processor while it
  // waits. No effect where calls never spin. At first they may.
  virtual void set_spinning(bool spins) = 0;

  // For messages: "exchange 118 of step 7". Calls are counted from 1 in each step.
  virtual void begin_step(int64_t step) = 0;
  // The last of begin_step() here; 0: there was none. Any thread.
  virtual int64_t step() const = 0;

  // Ends the group: the first such error is what all calls of all ranks return, also those that wait. Any thread.
  virtual void fail(const Status& why) = 0;
  // That error; nullopt: the group has not ended. Any thread.
  virtual std::optional<Status> failure() const = 0;

  // Seconds since the start. Any thread.
  struct Times {
    double calls = 0;  // of this rank in exchanges, broadcasts and barriers
    // Of each rank, by rank, for others in these and in send() and recv(), as far as it is known here: of this rank;
    // and over a network of the others until the last call or message that came from them.
    std::array<double, kMaxRanks> waits = {};
  };
  virtual Times times() const = 0;
};

}  // namespace transept
