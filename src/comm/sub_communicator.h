// Some neighbouring ranks of a group as a group of their own (a stage of a pipeline, whose ranks divide its layers).
// Made of the whole group's messages alone, so that it works over every way that a group has; ranks that have no part
// in a call make none. It lives and dies with the whole: an error ends both.
//
// Bytes are copied twice: exchanges between all ranks of a host (shared_communicator.h) cost less. A call takes turns
// with the messages that a pair of ranks sends itself: all ranks of the pair make both in the same order.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/communicator.h"

namespace transept {

// One thread at a time, but for fail(), failure() and times().
class SubCommunicator final : public Communicator {
 public:
  // Ranks [first, first + size) of `whole`, which outlives it. REQUIRES: this rank is one of them, and they are there.
  SubCommunicator(Communicator& whole, int first, int size);

  int rank() const override { return whole_.rank() - first_; }
  int size() const override { return size_; }
  size_t max_bytes() const override { return whole_.max_bytes(); }
  std::span<std::byte> outbox(size_t bytes) override;
  StatusOr<Parts> exchange(size_t bytes) override;
  Status broadcast(std::span<std::byte> data, int root) override;
  Status barrier() override { return exchange(0).status(); }
  Status send(int to, std::span<const std::byte> data) override { return whole_.send(first_ + to, data); }
  Status recv(int from, std::span<std::byte> data) override { return whole_.recv(first_ + from, data); }
  size_t mailbox_bytes() const override { return whole_.mailbox_bytes(); }
  Status await(int from) override { return whole_.await(first_ + from); }
  // Of the whole group.
  void set_rank_timeout(Duration timeout) override { whole_.set_rank_timeout(timeout); }
  void set_spinning(bool spins) override { whole_.set_spinning(spins); }
  void begin_step(int64_t step) override { whole_.begin_step(step); }
  int64_t step() const override { return whole_.step(); }
  void fail(const Status& why) override { whole_.fail(why); }
  std::optional<Status> failure() const override { return whole_.failure(); }
  Times times() const override { return whole_.times(); }

 private:
  Communicator& whole_;
  const int first_, size_;
  size_t num_calls_ = 0;
  std::array<std::vector<std::byte>, 2> outboxes_;  // of the last exchange, and of the next
  std::vector<std::vector<std::byte>> received_;    // of the last, by rank
  std::vector<std::span<const std::byte>> parts_;
};

}  // namespace transept
