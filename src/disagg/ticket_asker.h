// Asks for encodes by tickets of the broker's shared queue, and keeps what it asks for until it is withdrawn: the
// encode instance that takes a ticket fetches the input from here (find()). A broker that has lost its tickets, or was
// away, hears of them again. While no encode instance of the model is known, inputs wait a while, and fail then. While
// the broker is away, none is known or unknown: the wait begins when it is back.
//
// Owned by a decode instance, beside its connector. A thread of its own speaks with the broker. The functions of
// EncodeAsker are the engine's; find() and refuse() are thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "disagg/last_error.h"
#include "encoder_cache/broker.h"
#include "encoder_cache/ec_timers.h"
#include "engine/encode_asker.h"

namespace transept {

class TicketAsker final : public EncodeAsker {
 public:
  struct Options {
    InstanceId self;
    std::string url;  // Ticket::asker_url
    Duration offer_again = std::chrono::seconds(5);
    Duration retry = std::chrono::milliseconds(200);       // while the broker is away
    Duration wait_for_encoders = std::chrono::seconds(5);  // since one was known, or since the input was asked for
    Duration look_for_encoders = std::chrono::milliseconds(500);
  };

  TicketAsker(const Options& options, std::shared_ptr<Broker> broker);
  // What it has asked for is withdrawn.
  ~TicketAsker() override;
  TicketAsker(const TicketAsker&) = delete;
  TicketAsker& operator=(const TicketAsker&) = delete;

  // Why encode instances of this other model are of no use here: said where no encode instance is there but such ones.
  void explain(const ModelFingerprint& other, std::string why);

  // Inputs can be encoded elsewhere than by encode instances, so once none was known for wait_for_encoders, inputs fail
  // at once until one is.
  void wait_once();

  void start(std::shared_ptr<EcInbox> inbox) override;
  void ask(EncodeAsk ask) override;
  void withdraw(const EcInput& input) override;

  // What is to be encoded, while it is asked for; null: it is not.
  std::shared_ptr<const EncoderItem> find(const EcInput& input) const;
  // An encode instance says that it cannot be encoded, and why: EcAskFailed follows. False: it is not asked for.
  bool refuse(const EcInput& input, const Status& why);

  size_t num_asked() const;
  int64_t num_offered_again() const;  // tickets that the broker had lost
  LastError last_error() const;       // of what was asked for

 private:
  struct Asked {
    EncodeAsk ask;
    TimePoint begin, deadline;
    TimePoint next_offer = TimePoint::max();  // its place in offers_
    TimePoint offered = TimePoint::max();     // when the broker first took it
  };
  struct Offer {
    Ticket ticket;
    TimePoint begin;
    TimePoint offered = TimePoint::max();
  };

  void run();
  void offer(const Offer& offer, TimePoint now);
  Status check_wait(const Offer& offer, TimePoint now);
  void fail(const EcInput& input, const Status& why);
  void offer_later(const EcInput& input, TimePoint at, bool is_offered = false);
  void collect_due(TimePoint now, std::vector<Offer>& due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void remove(std::map<EcInput, Asked>::iterator asked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string why_others(const ModelFingerprint& model) const;
  TimePoint begin_of_wait(const Offer& offer);

  const Options options_;
  const std::shared_ptr<Broker> broker_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<EcInbox> inbox_ ABSL_GUARDED_BY(mutex_);
  std::pair<ModelFingerprint, std::string> explained_ ABSL_GUARDED_BY(mutex_);
  bool waits_once_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<EcInput, Asked> asked_ ABSL_GUARDED_BY(mutex_);
  EcTimers offers_ ABSL_GUARDED_BY(mutex_);
  std::vector<EcInput> withdrawn_ ABSL_GUARDED_BY(mutex_);  // the broker has not heard of it
  int64_t num_offered_again_ ABSL_GUARDED_BY(mutex_) = 0;
  LastError last_error_ ABSL_GUARDED_BY(mutex_);
  // The thread's.
  TimePoint looked_at_ = TimePoint::min();
  TimePoint known_at_ = TimePoint::min();   // an encode instance of the model, that takes tickets
  TimePoint drains_at_ = TimePoint::min();  // one that drains: it may have what was offered
  TimePoint back_at_ = TimePoint::min();    // the broker
  std::optional<TimePoint> first_begin_;    // of the first input
  bool is_away_ = false;                    // the broker
  std::optional<ModelFingerprint> others_;  // the model of an encode instance of another one
  std::thread thread_;
};

// Bytes of an item's ids and media, as they are fetched.
uint64_t num_input_bytes(const EncoderItem& item);

}  // namespace transept
