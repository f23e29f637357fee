// A broker over a Redis server (7.0 or later): the broker of several machines. Frames are in streams with a group each,
// tickets in one stream a model (redis_tickets.h), records and names in keys that run out; docs/decisions/
// 0039-redis-broker.md has the layout and what a restart of the server loses.
//
// Connections: one for calls, one for each subscription, one for each thread that takes tickets. The server is away
// when it has not answered in time or a connection breaks; all is connected again by itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/redis_keys.h"
#include "disagg/redis_link.h"
#include "disagg/redis_mailbox.h"
#include "disagg/redis_tickets.h"

namespace transept {

class RedisBroker final : public Broker {
 public:
  struct Options {
    std::string ns = "default";  // namespace: 1 to kMaxEcNameBytes of [A-Za-z0-9._-]. Fleets of several do not meet
    size_t max_frames = 10000;   // that wait for an instance on a channel
    size_t max_tickets = 4096;   // of a model
    Duration answer = RedisLink::kAnswer;  // the longest time that the server may need
    // Counts what waited for an instance of this process, and was dropped because no frame is so large; may be null.
    std::shared_ptr<std::atomic<int64_t>> num_too_large = nullptr;
  };
  // Connects, and tries that the user may do what a broker does. Errors name the URL without its password:
  // kInvalidArgument, the namespace, or the database is none of the server's; kPermissionDenied, a wrong password, or a
  // user without these commands or keys; kFailedPrecondition, an older server; kUnavailable; kNotFound, as
  // load_redis().
  static StatusOr<std::unique_ptr<RedisBroker>> connect(const RedisUrl& url, const Options& options);
  ~RedisBroker() override;
  RedisBroker(const RedisBroker&) = delete;
  RedisBroker& operator=(const RedisBroker&) = delete;

  Status publish(const InstanceId& to, EcChannel channel, std::span<const std::byte> frame) override;
  Status subscribe(const InstanceId& self, EcChannel channel,
                   std::function<void(std::span<const std::byte> frame)> take) override;
  Status offer(const Ticket& ticket) override { return tickets_.offer(ticket); }
  StatusOr<std::optional<Ticket>> take(const InstanceId& self, const ModelFingerprint& model, Duration wait) override {
    return tickets_.take(self, model, wait);
  }
  Status renew(const InstanceId& self, const EcKey& key) override { return tickets_.renew(self, key); }
  Status done(const InstanceId& self, const EcKey& key) override { return tickets_.done(self, key); }
  Status withdraw(const EcInput& input) override { return tickets_.withdraw(input); }
  StatusOr<int64_t> num_tickets() const override { return tickets_.num_waiting(); }
  // When the server's memory is full, a record that is there is kept as it is, and the error is kResourceExhausted.
  Status announce(const InstanceRecord& record, Duration ttl) override;
  Status leave(const InstanceId& self) override;
  StatusOr<std::vector<InstanceRecord>> peers() const override;  // at most 250 ms old
  void on_path(std::function<void(bool is_away)> tell) override { link_->on_path(std::move(tell)); }

 private:
  RedisBroker(std::unique_ptr<RedisLink> link, const Options& options);
  StatusOr<std::vector<InstanceRecord>> read_peers() const;
  void forget_names(const std::vector<std::string>& names) const;
  void end_mailboxes(const std::function<bool(const InstanceId&)>& is_ended);
  void forget_peers() const;
  void list_peer(const InstanceRecord& record);

  const Options options_;
  const RedisKeys keys_;
  const std::unique_ptr<RedisLink> link_;
  mutable RedisTickets tickets_;
  Mutex mailboxes_mutex_;
  std::vector<std::unique_ptr<RedisMailbox>> mailboxes_ ABSL_GUARDED_BY(mailboxes_mutex_);
  mutable Mutex peers_mutex_;
  mutable std::vector<InstanceRecord> peers_ ABSL_GUARDED_BY(peers_mutex_);
  mutable TimePoint peers_until_ ABSL_GUARDED_BY(peers_mutex_) = TimePoint::min();
};

}  // namespace transept
