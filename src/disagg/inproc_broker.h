// A broker within a process: for tests, and for roles that share a process. All brokers of one hub reach each other.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/instance_book.h"
#include "disagg/ticket_queue.h"

namespace transept {

// Thread-safe. Shared by its brokers.
class InprocHub final {
 public:
  struct Options {
    InstanceBook::Options instances;
    size_t max_tickets = 4096;
  };
  explicit InprocHub(const Options& options) : options_(options) { forget(); }

  // For tests: what a broker of a process of its own does when it is killed and started again.
  void go_away();
  void come_back_empty();

 private:
  friend class InprocBroker;
  struct State {
    explicit State(const Options& options) : instances(options.instances), tickets(options.max_tickets) {}
    InstanceBook instances;
    TicketQueue tickets;
  };
  void forget();
  void tell(bool is_away);

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<State> state_ ABSL_GUARDED_BY(mutex_);
  bool is_away_ ABSL_GUARDED_BY(mutex_) = false;
  Mutex tell_mutex_;  // held while listeners are called
  std::vector<std::pair<const void*, std::function<void(bool)>>> listeners_ ABSL_GUARDED_BY(tell_mutex_);
};

class InprocBroker final : public Broker {
 public:
  explicit InprocBroker(std::shared_ptr<InprocHub> hub) : hub_(std::move(hub)) {}
  // No callback runs or follows when it has returned.
  ~InprocBroker() override;
  InprocBroker(const InprocBroker&) = delete;
  InprocBroker& operator=(const InprocBroker&) = delete;

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
  template <typename Do>
  Status with_state(Do&& act) const;
  void deliver(const InstanceId& self, EcChannel channel,
               const std::function<void(std::span<const std::byte> frame)>& take);

  const std::shared_ptr<InprocHub> hub_;
  bool is_stopped_ ABSL_GUARDED_BY(hub_->mutex_) = false;
  Mutex threads_mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(threads_mutex_);
};

}  // namespace transept
