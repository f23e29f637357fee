// Communicator of ranks on several hosts: bytes travel by Gloo (gloo_transport.h), errors and the group's end by the
// connections with the first rank (group_link.h). Each rank gives its part to each other one, and each adds the parts
// as ranks on one host do.
//
// A call is a frame to every rank, with the call's number and up to 184 bytes, and the part itself behind it if that is
// longer. A rank that waits sleeps. One that answers nothing for `rank_timeout` ends the group.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/communicator.h"
#include "base/mutex.h"
#include "comm/gloo_transport.h"
#include "comm/group_call.h"
#include "comm/group_link.h"

namespace transept {

class GlooCommunicator final : public Communicator {
 public:
  struct Options {
    Duration rank_timeout = std::chrono::seconds(60);
    size_t outbox_bytes = size_t{4} << 20;   // the most of an exchange, a rank; memory is used as it is touched
    size_t mailbox_bytes = size_t{1} << 16;  // what a sender may be ahead of each rank
  };

  // All ranks of the link call it. Errors end the group: Gloo is not installed, or not in this build; a rank cannot be
  // reached; a stranger has taken a rank's place.
  static StatusOr<std::unique_ptr<GlooCommunicator>> create(std::unique_ptr<GroupLink> link, const Options& options);
  // Waits, for a second, until messages are on their way.
  ~GlooCommunicator() override;

  int rank() const override { return link_->rank(); }
  int size() const override { return link_->size(); }
  size_t max_bytes() const override { return options_.outbox_bytes; }
  std::span<std::byte> outbox(size_t bytes) override;
  StatusOr<Parts> exchange(size_t bytes) override;
  Status broadcast(std::span<std::byte> data, int root) override;
  Status barrier() override;
  Status send(int to, std::span<const std::byte> data) override;
  Status recv(int from, std::span<std::byte> data) override;
  size_t mailbox_bytes() const override { return options_.mailbox_bytes; }
  Status await(int from) override;
  void set_rank_timeout(Duration timeout) override { options_.rank_timeout = timeout; }
  void set_spinning(bool) override {}
  void begin_step(int64_t step) override;
  int64_t step() const override { return step_; }
  void fail(const Status& why) override { link_->fail(why); }
  std::optional<Status> failure() const override { return link_->failure(); }
  Times times() const override;

  const GroupLink& link() const { return *link_; }

 private:
  static constexpr size_t kInlineBytes = 184;
  struct alignas(64) Frame {
    GroupCall call;
    int64_t waited_ns = 0;  // of the sender, until this call or message
    std::array<std::byte, kInlineBytes> bytes{};
  };
  struct FreeBytes {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t(64)); }
  };
  using Bytes = std::unique_ptr<std::byte[], FreeBytes>;
  using Buffer = std::unique_ptr<TransportBuffer>;
  // A message that may not have been taken yet.
  struct Outgoing {
    Frame frame;
    std::vector<std::byte> data;
    Buffer frame_buffer, data_buffer;
  };
  struct Peer {
    Frame call_out, call_in, message_in;
    Bytes part;  // its part of the last exchange
    Buffer call_out_buffer, call_in_buffer, message_in_buffer, part_buffer;
    std::array<Buffer, 2> own_buffers;  // of own_, to be sent to it
    bool is_message_there = false;
    uint64_t num_received = 0, num_sent = 0;
    std::deque<std::unique_ptr<Outgoing>> outgoing;
    size_t outgoing_bytes = 0;
  };

  GlooCommunicator(std::unique_ptr<GroupLink> link, std::unique_ptr<Transport> transport, const Options& options);
  static Bytes make_bytes(size_t size);
  Peer& peer(int rank) { return *peers_[static_cast<size_t>(rank)]; }

  Status connect();
  Status make_sure_of(int other);
  Status run(CallKind kind, size_t bytes, size_t part_bytes, int root);
  Status run_parts(size_t part_bytes);
  Status post(int other, size_t part_bytes);
  Status take(int other, size_t part_bytes);
  Status finish_sends(int other, size_t part_bytes);
  Status await_message(int from, std::optional<Duration> timeout);
  Status finish_oldest(int to);
  void count_message();
  void count_wait(TimePoint begin);  // from then until now
  bool gives_part(int rank) const;

  void wake();
  Status wait(TransportBuffer& buffer, bool is_receive, int other, std::optional<Duration> timeout);
  Status wait_received(const Buffer& buffer, int other) { return wait(*buffer, true, other, options_.rank_timeout); }
  Status wait_sent(const Buffer& buffer, int other) { return wait(*buffer, false, other, options_.rank_timeout); }
  Status lost(int other, const Status& why);
  Status fail_with(Status why);

  Options options_;
  GroupCall call_;  // the last, or the last message
  uint64_t num_calls_ = 0;
  std::atomic<int64_t> step_{0};
  int64_t num_in_step_ = 0;
  std::atomic<int64_t> calls_ns_{0};
  std::array<std::atomic<int64_t>, kMaxRanks> waited_ns_{};  // by rank
  std::array<Bytes, 2> own_;                                 // the outbox: call % 2
  std::array<std::span<const std::byte>, kMaxRanks> parts_;

  Mutex wait_mutex_;
  TransportBuffer* waiting_ ABSL_GUARDED_BY(wait_mutex_) = nullptr;
  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; this rank's is null
  std::unique_ptr<GroupLink> link_;           // calls wake()
};

}  // namespace transept
