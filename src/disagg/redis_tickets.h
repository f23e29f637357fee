// The tickets of a broker over Redis: one stream a model with one consumer group, and one key an input. Thread-safe.
//
// An entry of the stream is a ticket and a nonce. The input's key holds that nonce, and lives as long as the ticket's
// time: a ticket exists while its input's key holds its nonce. Deleting the key withdraws it; an entry without a key is
// over, and is dropped by who sees it. The group knows who has an entry, for how long, and how often it was given out,
// which is its attempt.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/redis_keys.h"
#include "disagg/redis_link.h"

namespace transept {

class RedisTickets final {
 public:
  // Borrows the link. `max_tickets`: of a model, waiting and taken. `tidy_idle`: after which a taker that has nothing
  // is forgotten.
  RedisTickets(RedisLink& link, RedisKeys keys, size_t max_tickets, Duration tidy_idle = std::chrono::hours(1))
      : link_(link), keys_(std::move(keys)), max_tickets_(max_tickets), tidy_idle_(tidy_idle) {}

  // As the functions of Broker.
  Status offer(const Ticket& ticket);
  StatusOr<std::optional<Ticket>> take(const InstanceId& self, const ModelFingerprint& model, Duration wait);
  Status renew(const InstanceId& self, const EcKey& key);
  Status done(const InstanceId& self, const EcKey& key);
  Status withdraw(const EcInput& input);
  StatusOr<int64_t> num_waiting();

 private:
  // What this broker's instances have.
  struct Taken {
    InstanceId self;
    EcKey key;
    std::string stream, id, nonce;
    int64_t num_deliveries = 0;
    TimePoint deadline;
  };
  struct Given {  // by the group, and not looked at yet
    RedisEntry entry;
    int64_t num_deliveries = 0;
  };
  enum class Added : uint8_t { kAdded, kIsThere, kFull, kRaced };

  StatusOr<Added> add(const Ticket& ticket, const std::string& stream);
  StatusOr<size_t> drop_dead(const std::string& stream);
  StatusOr<std::vector<RedisValue>> run(RedisConnection& connection, const std::vector<RedisCommand>& commands) const;
  void drop_unread(const InstanceId& self, const std::string& stream);
  bool is_time_to_tidy();
  void tidy(RedisConnection& connection, const std::string& stream);
  StatusOr<std::optional<Ticket>> take_with(RedisConnection& connection, const InstanceId& self,
                                            const std::string& stream, TimePoint end);
  StatusOr<std::optional<Given>> give(RedisConnection& connection, const std::string& consumer,
                                      const std::string& stream, TimePoint end);
  StatusOr<std::optional<Ticket>> accept(RedisConnection& connection, const InstanceId& self, const std::string& stream,
                                         const Given& given);
  StatusOr<std::optional<RedisPending>> look(RedisLink::Turn& turn, const Taken& taken) const;
  std::optional<Taken> find_taken(const InstanceId& self, const EcKey& key);
  void forget(const Taken& taken);
  StatusOr<std::unique_ptr<RedisConnection>> borrow();

  RedisLink& link_;
  const RedisKeys keys_;
  const size_t max_tickets_;
  const Duration tidy_idle_;
  Mutex mutex_;
  std::map<EcInput, Taken> taken_ ABSL_GUARDED_BY(mutex_);
  TimePoint tidy_at_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  std::vector<std::unique_ptr<RedisConnection>> idle_ ABSL_GUARDED_BY(mutex_);  // connections of take()
};

}  // namespace transept
