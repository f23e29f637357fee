// Takes the encodes that decode instances ask for from the broker's shared queue: while there is room, a ticket is
// taken, its input is fetched from who has asked, and it is encoded. Tickets in work are renewed. One that was not
// renewed, because its instance has died, goes to another.
//
// Owned by an encode instance. Its threads: one that takes and renews, and one for each ticket in work. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status.h"
#include "disagg/instance_calls.h"
#include "disagg/last_error.h"
#include "encoder_cache/broker.h"
#include "encoder_cache/ec_stats.h"

namespace transept {

// What encodes. Thread-safe. The caller's threads wait in encode().
class EncodeIntake {
 public:
  virtual ~EncodeIntake() = default;
  // What a prompt that was asked for (is_of_prompt()) is to the model. Errors: why it is no input of it.
  virtual StatusOr<EncoderItem> read(const Ticket& ticket, const std::string& prompt) = 0;
  // Returns when the rows of the item, which has its digest, are at the ticket's consumer. Errors: why they are not;
  // kAborted by abort(), and for what is no fault of input or consumer: another instance may encode it.
  virtual Status encode(const Ticket& ticket, EncoderItem item) = 0;
  // Ends encode() of this input soon. No-op if there is none.
  virtual void abort(const EcInput& input) = 0;
};

// What came of a ticket, for logs.
struct TicketEnd {
  const Ticket& ticket;
  std::string_view outcome;  // "done", "refused", "left"
  double seconds = 0;        // since it was taken
};

class TicketTaker final {
 public:
  struct Options {
    InstanceId self;
    ModelFingerprint model;    // and client.secret: queue_of() them
    std::string bulk_address;  // of this instance; "": it reaches every consumer
    InstanceClient::Options client;
    int32_t max_in_work = 32;      // tickets, and threads
    int64_t max_positions = 4096;  // encoder positions of tickets in work, of which one is always taken
    Duration renew_every = std::chrono::milliseconds(500);
    Duration take_wait = std::chrono::milliseconds(250);  // how long the broker may keep the thread
    Duration busy_look = std::chrono::milliseconds(5);    // how often one that has much to do asks for more, at first
    Duration retry = std::chrono::milliseconds(200);      // of a broker or an asker that is away
    int32_t max_fetches = 3;                              // then another instance may try
    Duration wait_for_broker = std::chrono::seconds(5);   // of one that drains (drain())
    std::function<void(const TicketEnd&)> on_end;         // on any thread of it; null: none is told
  };

  // Borrows the intake.
  TicketTaker(const Options& options, std::shared_ptr<Broker> broker, EncodeIntake& intake);
  // Aborts what is in work: other instances take those tickets when they were not renewed.
  ~TicketTaker();
  TicketTaker(const TicketTaker&) = delete;
  TicketTaker& operator=(const TicketTaker&) = delete;

  // Takes no further ticket, and waits until none is in work. False: some are after `timeout`. What is in work when the
  // broker was away for wait_for_broker is left: the process that has the broker may have ended, and the consumers of
  // rows with it.
  bool drain(Duration timeout);

  struct Counts {
    int64_t num_taken = 0;
    int64_t num_claimed = 0;  // of them: that another instance had before
    EcHistogram waited;       // from their offers until they were taken; those that were claimed are not in it
    int64_t num_done = 0;     // the rows are at their consumers
    int64_t num_refused = 0;  // the askers were told why
    int64_t num_left = 0;     // to other instances, or as no request waits for them
  };
  Counts counts() const;
  size_t num_in_work() const;
  LastError last_error() const;

 private:
  enum class Fate : uint8_t { kDone, kRefused, kOver, kLeft };
  struct InWork {
    Ticket ticket;  // as it was taken last
    TimePoint taken;
    TimePoint deadline;
    TimePoint renewed;
    bool is_begun = false;  // a worker has it
    bool is_lost = false;   // the broker says that it is another's, or over
  };

  bool has_room() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run_taker();
  void take_one(bool is_busy, Duration& look);
  void add(const Ticket& ticket);
  void renew_due();
  void leave_all_if_broker_is_gone();
  void run_worker();
  std::map<EcInput, InWork>::iterator next_to_begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<InstanceClient> take_client(const std::string& url) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Fate work(InstanceClient& client, const Ticket& ticket, TimePoint deadline);
  Fate fate_of(InstanceClient& client, const Ticket& ticket, TimePoint deadline, const Status& status);
  Fate tell(InstanceClient& client, const Ticket& ticket, TimePoint deadline, const InjectedInput& injected);
  StatusOr<InstanceClient::Fetched> fetch(InstanceClient& client, const Ticket& ticket, TimePoint deadline);
  StatusOr<EncoderItem> fetch_item(InstanceClient& client, const Ticket& ticket, TimePoint deadline);
  bool may_retry(const Ticket& ticket, TimePoint deadline, const Status& status);
  std::vector<EcInput> lose_all();
  bool is_lost(const EcInput& input) const;
  Status check_way(const InstanceId& consumer) const;
  bool is_gone(const InstanceId& consumer) const;
  bool wait_before_retry(const EcInput& input, TimePoint deadline);
  void end(const EcInput& input, Fate fate);
  void note_error(const Status& status);

  const Options options_;
  const ModelFingerprint queue_;  // whose tickets it takes
  const std::shared_ptr<Broker> broker_;
  EncodeIntake& intake_;
  mutable Mutex mutex_;
  CondVar changed_;   // for all but idle workers
  CondVar to_begin_;  // for those
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint drains_since_ ABSL_GUARDED_BY(mutex_);
  TimePoint broker_heard_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();  // its last answer
  bool is_taking_ ABSL_GUARDED_BY(mutex_) = false;                     // the broker may give a ticket any moment
  std::map<EcInput, InWork> in_work_ ABSL_GUARDED_BY(mutex_);
  int64_t num_positions_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<InstanceClient>> clients_ ABSL_GUARDED_BY(mutex_);  // idle, the one used last at the end
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  LastError last_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> workers_;
  std::thread taker_;
};

}  // namespace transept
