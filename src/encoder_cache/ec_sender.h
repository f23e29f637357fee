// One transfer as its sender sees it: an encode instance announces an output when its request arrives, encodes it, and
// sends the bytes when both the encode has ended and the receiver has room. A value: events and times go in, actions
// come out; who owns it (ec_sender_table.h) does what they say. Used by one thread at a time.
//
//   queued --start--> announced --allocated--> granted --encoded--> sending --sent--> sent --injected--> done
//
// The transitions are the table at the top of ec_sender.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "encoder_cache/ec_stats.h"
#include "encoder_cache/ec_transfer.h"

namespace transept {

enum class EcSenderState : uint8_t {
  kQueued,     // nothing was said
  kAnnounced,  // metadata was sent
  kGranted,    // room is reserved, the encode has not ended
  kSending,    // chunks are on their way to the transport
  kSent,       // the transport has taken all of them
  kDone,
  kFailed,
};
inline constexpr int kNumEcSenderStates = 7;

enum class EcSenderEvent : uint8_t {
  kStart,
  kEncoded,
  // What the receiver says of this attempt.
  kAllocated,
  kHit,
  kWait,
  kBusy,
  kNever,
  kIncompatible,
  kGone,
  kInjected,
  kCancelled,  // by the receiver, who has lost interest
  // What the transport says.
  kSendProgress,
  kSendDone,
  kSendFailed,
  kOutboxFull,  // a message could not even be queued
  kPathAway,    // no message can be sent now; the outbox keeps what was said
  kPathBack,
  kPeerGone,  // the registry says so
  kAbort,     // by the caller
  kTime,      // time has passed: next_time()
  // What the sender finds itself.
  kAgain,         // a message was not answered in time
  kNoAnswer,      // it was not answered max_unanswered times
  kStalled,       // no progress for a lease
  kUnfinished,    // the receiver has said max_unfinished times that bytes are missing
  kAttemptsOver,  // the attempt failed, and no other is left
  kDeadline,
};
inline constexpr int kNumEcSenderEvents = 26;

enum class EcSenderAction : uint8_t {
  kSendMetadata,
  kSendQuery,
  kSendCancel,
  kSendCache,    // all chunks, to reservation() at bulk_address()
  kStopSending,  // no further chunk of this input, of whatever attempt
  kAnswer,       // to the caller: status(). Exactly once
};

class EcSender final {
 public:
  // meta.time_left counts from `now`. meta.key.attempt is the first attempt. `seed`: of the jitter.
  EcSender(EcMeta meta, TimePoint now, const EcTimes& times, uint64_t seed);

  // Appends what is to be done, in order. Events that mean nothing in this state do nothing.
  void on(EcSenderEvent event, TimePoint now, std::vector<EcSenderAction>& actions);
  // What came by channels 0 and 1. Answers to other attempts do nothing.
  void on_allocation(const EcAllocation& allocation, TimePoint now, std::vector<EcSenderAction>& actions);
  void on_injection(const EcInjection& injection, TimePoint now, std::vector<EcSenderAction>& actions);

  // When to call on(kTime) at the latest; TimePoint::max(): never.
  TimePoint next_time() const;

  EcSenderState state() const { return state_; }
  bool is_over() const { return state_ == EcSenderState::kDone || state_ == EcSenderState::kFailed; }
  bool is_encoded() const { return is_encoded_; }
  const EcKey& key() const { return meta_.key; }
  EcMeta meta(TimePoint now) const;  // of the current attempt, with the time that is left
  uint64_t reservation() const { return reservation_; }
  const std::string& bulk_address() const { return bulk_address_; }
  // REQUIRES: is_over(). Errors, saying why: kDeadlineExceeded, kCancelled (by caller or receiver), kUnavailable (peer
  // gone or silent, attempts over, outbox full), kResourceExhausted (never), kFailedPrecondition (incompatible).
  Status status() const;
  EcOutcome outcome() const;  // REQUIRES: is_over()

 private:
  void apply(EcSenderEvent event, TimePoint now, std::vector<EcSenderAction>& actions);
  void note_answer(EcSenderEvent event, TimePoint now, std::vector<EcSenderAction>& actions);
  void next_attempt(EcSenderEvent event, TimePoint now, std::vector<EcSenderAction>& actions);
  void on_time(TimePoint now, std::vector<EcSenderAction>& actions);
  void set_timers(EcSenderEvent event, TimePoint now);

  EcMeta meta_;
  TimePoint deadline_;
  EcTimes times_;
  EcRetryTimer retry_;
  TimePoint stall_at_ = TimePoint::max();
  EcSenderState state_ = EcSenderState::kQueued;
  bool is_encoded_ = false;
  bool is_path_away_ = false;
  int32_t num_unanswered_ = 0;
  int32_t num_unfinished_ = 0;
  int32_t num_new_attempts_ = 0;
  uint64_t reservation_ = 0;
  std::string bulk_address_;
  EcSenderEvent end_ = EcSenderEvent::kStart;  // why it is over
};

}  // namespace transept
