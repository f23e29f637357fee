// The tickets of a broker (encoder_cache/broker.h): of each model in order of their offers, each with at most one
// taker. A value: time goes in. Owned by a broker's hub or server; used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "encoder_cache/broker.h"
#include "encoder_cache/ec_timers.h"

namespace transept {

class TicketQueue final {
 public:
  // Tickets that wait and that are taken count.
  explicit TicketQueue(size_t max_tickets) : max_tickets_(max_tickets) {}

  // As the functions of Broker.
  Status offer(const Ticket& ticket, TimePoint now);
  std::optional<Ticket> take(const InstanceId& self, const ModelFingerprint& model, TimePoint now);
  Status renew(const InstanceId& self, const EcKey& key, TimePoint now);
  Status done(const InstanceId& self, const EcKey& key, TimePoint now);
  void withdraw(const EcInput& input) { remove(input); }
  int64_t num_waiting(TimePoint now);

  // When the next taken ticket of a model becomes idle, so that take() has it; TimePoint::max(): none is taken.
  TimePoint next_time(const ModelFingerprint& model) const;

 private:
  struct Entry {
    Ticket ticket;
    TimePoint deadline = TimePoint::max();  // timers, in deadlines_ and the line's idle
    TimePoint idle_at = TimePoint::max();
    uint64_t place = 0;  // in the line's waiting; 0: it is taken
    InstanceId taker;
  };
  // The tickets of one model, of which there is at least one.
  struct Line {
    std::map<uint64_t, EcInput> waiting;  // by places
    EcTimers idle;
    size_t num_tickets = 0;
  };
  using LineKey = std::array<std::byte, 32>;

  void drop_late(TimePoint now);
  void remove(const EcInput& input);
  // Errors: kNotFound.
  StatusOr<Entry*> find_taken(const InstanceId& self, const EcKey& key, TimePoint now);

  size_t max_tickets_;
  uint64_t num_offered_ = 0;
  std::map<EcInput, Entry> entries_;  // entries do not move
  std::map<LineKey, Line> lines_;     // by ModelFingerprint::bytes
  EcTimers deadlines_;
};

}  // namespace transept
