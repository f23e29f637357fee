// Offers tickets in a broker's shared queue until they are withdrawn. A broker that has lost its tickets, or was away,
// hears of them again. While no encode instance of a ticket's model is known, the ticket waits a while, and fails then.
// While the broker is away, none is known or unknown: the wait begins when it is back. An owner that drains waits for a
// broker that is away no longer than for encode instances: the process that has both may have ended.
//
// Owned by who asks for encodes, and keeps their inputs: a decode instance (ticket_asker.h), a proxy. A thread of its
// own speaks with the broker. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "encoder_cache/broker.h"
#include "encoder_cache/ec_timers.h"

namespace transept {

class TicketOffers final {
 public:
  struct Options {
    Duration offer_again = std::chrono::seconds(5);
    Duration retry = std::chrono::milliseconds(200);       // while the broker is away
    Duration wait_for_encoders = std::chrono::seconds(5);  // since one was known, or since the ticket was added
    Duration look_for_encoders = std::chrono::milliseconds(500);
    std::shared_ptr<const EcSecret> secret;  // of the owner; null: none
  };

  // `fail` is called on the thread, at most once for a ticket, which is withdrawn then. Errors: kResourceExhausted, the
  // queue is full; kUnavailable, no encode instance of the model is there; kPermissionDenied, those that are there have
  // another secret, which the message says.
  TicketOffers(const Options& options, std::shared_ptr<Broker> broker,
               std::function<void(const EcInput& input, const Status& why)> fail);
  // What is offered is withdrawn. `fail` is not called any more.
  ~TicketOffers();
  TicketOffers(const TicketOffers&) = delete;
  TicketOffers& operator=(const TicketOffers&) = delete;

  // Offers until `time_left`, counted from now, is over. REQUIRES: the input is not offered already.
  void add(Ticket ticket);
  // No-op if it is not offered.
  void withdraw(const EcInput& input);

  // Offers all of them now, and not when it is their time: the broker may have lost them.
  void offer_again();

  // Why encode instances of this other model are of no use here: said where no encode instance is there but such ones.
  // Of several models, each with its own words.
  void explain(const ModelFingerprint& other, std::string why);
  // Inputs can be encoded elsewhere than by encode instances, so once none was known for wait_for_encoders, tickets
  // fail at once until one is.
  void wait_once();
  // The owner ends soon: a ticket fails (kUnavailable) once the broker was away for wait_for_encoders.
  void begin_drain();

  int64_t num_offered_again() const;  // tickets that the broker had lost

 private:
  struct Offered {
    Ticket ticket;
    TimePoint begin, deadline;
    TimePoint next_offer = TimePoint::max();  // its place in offers_
    TimePoint offered = TimePoint::max();     // when the broker first took it
  };
  struct Offer {
    Ticket ticket;
    TimePoint begin;
    TimePoint offered = TimePoint::max();
  };
  struct Known {
    TimePoint at = TimePoint::min();         // an encode instance that takes tickets
    TimePoint drains_at = TimePoint::min();  // one that drains: it may have what was offered
  };
  struct Seen {
    ModelFingerprint model;
    std::string other_secret;  // explain_other_secret()
  };
  using Model = std::array<std::byte, 32>;  // ModelFingerprint::bytes

  void run();
  void offer(const Offer& offer, TimePoint now);
  void look_for_encoders(TimePoint now);
  void broker_is_away(TimePoint now);
  Status check_wait(const Offer& offer, TimePoint now);
  Status check_away(TimePoint now) const;
  void fail(const EcInput& input, const Status& why);
  void hasten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void offer_later(const EcInput& input, TimePoint at, bool is_offered = false);
  void collect_due(TimePoint now, std::vector<Offer>& due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void remove(std::map<EcInput, Offered>::iterator offered) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status why_not(const ModelFingerprint& model) const;
  TimePoint begin_of_wait(const Offer& offer);

  const Options options_;
  const std::string own_mark_;  // of the secret
  const std::shared_ptr<Broker> broker_;
  const std::function<void(const EcInput& input, const Status& why)> tell_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::pair<ModelFingerprint, std::string>> explained_ ABSL_GUARDED_BY(mutex_);
  bool waits_once_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<EcInput, Offered> offered_ ABSL_GUARDED_BY(mutex_);
  EcTimers offers_ ABSL_GUARDED_BY(mutex_);
  std::vector<EcInput> withdrawn_ ABSL_GUARDED_BY(mutex_);  // the broker has not heard of it
  int64_t num_offered_again_ ABSL_GUARDED_BY(mutex_) = 0;
  // The thread's.
  TimePoint looked_at_ = TimePoint::min();
  TimePoint back_at_ = TimePoint::min();     // the broker
  std::optional<TimePoint> first_begin_;     // of the first ticket
  bool is_away_ = false;                     // the broker
  TimePoint away_since_ = TimePoint::max();  // the broker
  std::map<Model, Known> known_;             // encode instances of the owner's secret, by model
  std::vector<Seen> last_seen_;              // those that were there at the last look
  std::thread thread_;
};

}  // namespace transept
