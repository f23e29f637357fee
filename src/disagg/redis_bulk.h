// Chunks through a Redis server, the broker's: for fleets whose instances do not reach each other, or that want no
// further port. A chunk is a frame in a key of its own, which runs out, and an entry with the key's name in a stream of
// the receiver, which takes the frame out of the server (GETDEL). docs/decisions/0041-bulk-transports.md says when to
// use it.
//
// Bounded: a sender leaves at most kMaxWaiting chunks for a receiver that were not taken, and waits. A server that is
// away or full, and a receiver that is not there, are waited for; the handshake says how long. The stream is there as
// long as its receiver, so an output for one that has ended stays with its sender.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/frame_writer.h"
#include "disagg/redis_keys.h"
#include "disagg/redis_line.h"
#include "disagg/send_queue.h"

namespace transept {

class RedisBulk final : public BulkTransport {
 public:
  static constexpr size_t kMaxWaiting = 8;

  struct Options {
    InstanceId self;
    std::string ns = "default";  // the broker's
    // How long bytes lie in the server at most: longer than the lease, after which a sender without progress gives up.
    Duration time = EcTimes().lease + std::chrono::seconds(15);
    Duration full = std::chrono::seconds(5);  // that an output waits for a server whose memory is full
    Duration answer = std::chrono::seconds(1);
  };
  // Connects, and tries that the user may do what it does. Errors: as RedisBroker::connect().
  static StatusOr<std::unique_ptr<RedisBulk>> create(const RedisUrl& url, const Options& options,
                                                     std::shared_ptr<FrameWriter> writer);
  ~RedisBulk() override;
  RedisBulk(const RedisBulk&) = delete;
  RedisBulk& operator=(const RedisBulk&) = delete;

  std::string address() const override;  // redis:NAME:INCARNATION
  void send(std::string_view to, Sending sending) override;
  void cancel(const EcInput& input) override { queue_.cancel(input); }
  void receive(std::function<void(std::span<const std::byte> frame)> take) override;

  int64_t num_lost() const { return num_lost_; }  // entries without bytes, or with another's

 private:
  // A receiver, of the sending thread.
  struct Peer {
    bool is_there = false;             // when it was last looked
    std::vector<std::string> waiting;  // keys of chunks that it has not taken, the oldest first
    TimePoint used;
    TimePoint again_at = TimePoint::min();    // not to be asked for before
    TimePoint full_since = TimePoint::max();  // the server's memory
  };

  RedisBulk(const RedisUrl& url, const Options& options, std::shared_ptr<FrameWriter> writer);
  void run_sender();
  bool send_one(const std::string& to);
  StatusOr<bool> hand_over(const std::string& to, const EcChunk& chunk);
  StatusOr<bool> has_room(Peer& peer, const std::string& stream);
  Status wait_while_full(Peer& peer, const Status& full);
  void wait_for_peers(bool is_any_waiting);
  void forget_idle(const std::vector<std::string>& destinations);

  void run_receiver(const std::function<void(std::span<const std::byte> frame)>& take);
  Status serve(const std::function<void(std::span<const std::byte> frame)>& take);
  Status make_stream();
  Status fetch(std::string_view key, const std::function<void(std::span<const std::byte> frame)>& take);

  const Options options_;
  const RedisUrl url_;
  const RedisKeys keys_;
  const std::string stream_;  // of this receiver
  const std::shared_ptr<FrameWriter> writer_;
  SendQueue queue_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<int64_t> num_lost_{0};
  RedisLine sending_, receiving_;
  Mutex mutex_;
  CondVar changed_;
  bool is_called_ ABSL_GUARDED_BY(mutex_) = false;  // there may be more to send
  // Of the sending thread.
  std::map<std::string, Peer> peers_;
  Duration pause_{};
  std::vector<std::byte> frame_;
  std::thread sender_, receiver_;
};

// The stream of a receiver that says this address. Errors: kInvalidArgument, it is none of this transport.
StatusOr<std::string> redis_bulk_stream(const RedisKeys& keys, std::string_view address);

}  // namespace transept
