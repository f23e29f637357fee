// A client of a LocalServer: the broker of the processes of one machine. A thread of its own has the socket; each
// subscription has one that takes its frames. What is asked waits for the server's answer, a second at most.
//
// The server is away when it has not answered for a second; one that has started again is known by its id, and hears
// subscriptions again.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/local_codec.h"
#include "disagg/zmq_socket.h"

namespace transept {

class LocalBroker final : public Broker {
 public:
  // `path`: of the server's socket, which need not be there yet. Errors: as load_zmq(); kInvalidArgument, the path is
  // too long.
  static StatusOr<std::unique_ptr<LocalBroker>> connect(const std::string& path);
  ~LocalBroker() override;
  LocalBroker(const LocalBroker&) = delete;
  LocalBroker& operator=(const LocalBroker&) = delete;

  Status publish(const InstanceId& to, EcChannel channel, std::span<const std::byte> frame) override;
  Status subscribe(const InstanceId& self, EcChannel channel,
                   std::function<void(std::span<const std::byte> frame)> take) override;
  Status offer(const Ticket& ticket) override;
  StatusOr<std::optional<Ticket>> take(const InstanceId& self, const ModelFingerprint& model, Duration wait) override;
  Status renew(const InstanceId& self, const EcKey& key) override;
  Status done(const InstanceId& self, const EcKey& key) override;
  Status withdraw(const EcInput& input) override;
  StatusOr<int64_t> num_tickets() const override;
  Status announce(const InstanceRecord& record, Duration ttl) override;
  Status leave(const InstanceId& self) override;
  StatusOr<std::vector<InstanceRecord>> peers() const override;
  void on_path(std::function<void(bool is_away)> tell) override;

 private:
  struct Pending {
    bool is_over = false;
    LocalReply reply;  // without a frame
  };
  struct Subscription {
    InstanceId self;
    EcChannel channel = EcChannel::kAllocation;
    std::function<void(std::span<const std::byte> frame)> take;
    // Frames that were not taken, by their numbers: one that comes again meanwhile is one.
    std::map<uint64_t, std::vector<std::byte>> frames;
    std::thread thread;
  };

  LocalBroker(std::unique_ptr<ZmqContext> context, ZmqSocket socket);
  StatusOr<LocalReply> call(LocalRequest request, Duration wait = Duration::zero()) const;
  Status ask(const LocalRequest& request) const { return call(request).status(); }
  void push(const LocalRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The socket's thread.
  void run();
  void send_queued();
  void receive();
  void on_message(LocalReply message, TimePoint now);
  void look_after(TimePoint now);
  void renew_subscriptions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void deliver(Subscription& subscription);

  std::unique_ptr<ZmqContext> context_;
  ZmqSocket socket_;
  mutable ZmqWaker waker_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_away_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t server_ ABSL_GUARDED_BY(mutex_) = 0;  // its id; 0: not heard yet
  TimePoint heard_ ABSL_GUARDED_BY(mutex_);
  TimePoint pinged_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  mutable uint64_t num_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable std::map<uint64_t, Pending*> pending_ ABSL_GUARDED_BY(mutex_);  // of threads that wait
  mutable std::deque<std::vector<std::byte>> outgoing_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Subscription>> subscriptions_ ABSL_GUARDED_BY(mutex_);
  std::function<void(bool)> tell_;  // set before the broker is used
  std::thread thread_;
};

}  // namespace transept
