// Communicator of ranks on one host, over memory that they share (shared_group.h). An exchange copies nothing: others
// read a rank's part where it was written.
//
// A rank that waits spins for some 50 us, and sleeps then; with more threads than processors, or where it may not spin
// (set_spinning()), it sleeps at once. A rank that answers nothing for `rank_timeout` ends the group.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/communicator.h"
#include "base/function_ref.h"
#include "base/mutex.h"
#include "comm/shared_group.h"

namespace transept {

class SharedCommunicator final : public Communicator {
 public:
  struct Options {
    Duration rank_timeout = std::chrono::seconds(60);
    bool spins = true;
  };

  // Borrows the group. REQUIRES: each rank has one communicator at a time.
  SharedCommunicator(SharedGroup& group, int rank, const Options& options);

  int rank() const override { return rank_; }
  int size() const override { return group_.options().num_ranks; }
  size_t max_bytes() const override { return group_.options().outbox_bytes; }
  std::span<std::byte> outbox(size_t bytes) override;
  StatusOr<Parts> exchange(size_t bytes) override;
  Status broadcast(std::span<std::byte> data, int root) override;
  Status barrier() override;
  Status send(int to, std::span<const std::byte> data) override;
  Status recv(int from, std::span<std::byte> data) override;
  size_t mailbox_bytes() const override { return group_.options().mailbox_bytes; }
  Status await(int from) override;
  void set_rank_timeout(Duration timeout) override { options_.rank_timeout = timeout; }
  void set_spinning(bool spins) override { may_spin_ = spins; }
  void begin_step(int64_t step) override;
  int64_t step() const override { return step_; }
  void fail(const Status& why) override;
  std::optional<Status> failure() const override { return group_.failure(); }
  Times times() const override;

 private:
  std::string name_of_rank(int rank) const;
  Status run(CallKind kind, size_t bytes = 0, int root = 0);
  Status await_others(uint64_t number);
  Status check_same(int other);
  void count_message();
  Status fail_with(Status why);
  Status wait(int other, Bell& bell, FunctionRef<bool()> is_there) {
    return wait(other, bell, is_there, options_.rank_timeout);
  }
  Status wait(int other, Bell& bell, FunctionRef<bool()> is_there, std::optional<Duration> timeout);
  Status wait_counted(int other, Bell& bell, FunctionRef<bool()> is_there);
  // What a reader that sleeps is told of a message's bytes.
  enum class Ring { kNow, kWhenTheRestIsThere };
  Status put(int to, std::span<const std::byte> bytes, Ring ring);
  Status take(int from, std::span<std::byte> bytes);

  SharedGroup& group_;
  int rank_;
  Options options_;
  bool may_spin_ = true;
  uint64_t num_calls_ = 0;  // made, the one in work included
  std::atomic<int64_t> step_{0};
  int64_t num_in_step_ = 0;
  GroupCall call_;  // the last, or the last message
  std::array<std::span<const std::byte>, kMaxRanks> parts_;
  std::vector<uint64_t> num_received_;  // messages, by rank
  std::atomic<int64_t> calls_ns_{0};
  Mutex fail_mutex_;  // held by fail(), so that of two callers one names the reason
};

}  // namespace transept
