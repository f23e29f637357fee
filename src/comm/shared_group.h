// The memory that ranks of one host share: an outbox of two slots for each, a mailbox for each pair, and the error that
// ended the group. One memfd: nothing has a name in the file system, and nothing is left when the last process ends.
//
// A process creates the memory and hands its descriptor to the others, which attach to it. Ranks that are threads of
// one process share one object. Thread-safe; each rank's communicator (shared_communicator.h) writes its own parts
// alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/communicator.h"
#include "base/status.h"
#include "comm/futex.h"
#include "comm/group_call.h"

namespace transept {

class SharedGroup final {
 public:
  static constexpr size_t kMaxOutboxBytes = size_t{1} << 32, kMaxMailboxBytes = size_t{1} << 30;

  struct Options {
    int num_ranks = 1;
    size_t outbox_bytes = size_t{1} << 20;   // the most of an exchange, a rank
    size_t mailbox_bytes = size_t{1} << 16;  // of a pair: what a sender may be ahead
  };

  // What a rank says of itself and of its calls: readers look at a call when `num_calls` has reached its number.
  struct alignas(64) Rank {
    std::atomic<uint64_t> num_calls{0};
    Bell bell;
    std::atomic<int32_t> pid{0};
    std::atomic<int64_t> waited_ns{0};  // for others, in calls and messages
    GroupCall calls[2];                 // of slot 0 and 1
    // Written before the rank is named in Head::failed_by, and never again.
    int32_t failure_code = 0;
    uint32_t failure_bytes = 0;
    char failure[488] = {};
  };
  // A ring of bytes from one rank to another.
  struct alignas(64) Mailbox {
    std::atomic<uint64_t> num_written{0};
    Bell written;
    alignas(64) std::atomic<uint64_t> num_read{0};
    Bell read;
  };

  // Memory is used as it is touched: large outboxes cost nothing before. Errors: numbers out of range; the system has
  // no memfd.
  static StatusOr<std::unique_ptr<SharedGroup>> create(const Options& options);
  // Maps the memory that another process created. Takes the descriptor over. Errors: it is no such memory, or that of
  // another build.
  static StatusOr<std::unique_ptr<SharedGroup>> attach(int fd);
  ~SharedGroup();
  SharedGroup(const SharedGroup&) = delete;
  SharedGroup& operator=(const SharedGroup&) = delete;

  int fd() const { return fd_; }  // owned; other processes get a duplicate
  const Options& options() const { return options_; }
  Rank& rank(int rank) const;
  std::span<std::byte> slot(int rank, uint64_t call) const;  // of the outbox: call % 2
  Mailbox& mailbox(int from, int to) const;
  std::span<std::byte> mailbox_bytes(int from, int to) const;

  // The first rank's whose fail() was called; nullopt: none.
  std::optional<Status> failure() const;
  // Ends the group in the name of `rank`. Wakes all that wait. Later errors of any rank change nothing. One thread a
  // rank at a time.
  void fail(int rank, const Status& why);

 private:
  struct Head;
  struct Layout {
    size_t ranks = 0, outboxes = 0, mailboxes = 0, mail = 0, total = 0;
  };

  SharedGroup(int fd, std::byte* memory, const Options& options);
  static StatusOr<Layout> layout_of(const Options& options);
  Head& head() const;
  size_t pair_index(int from, int to) const;

  int fd_;
  std::byte* memory_;
  Options options_;
  Layout layout_;
};

}  // namespace transept
