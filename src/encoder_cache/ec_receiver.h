// One input as its receiver sees it: a decode instance reserves room when an output is announced, takes its bytes, and
// gives the room up when its request has used it or does not come. A value: events and times go in, actions come out;
// who owns it (ec_receiver_table.h) does what they say. Used by one thread at a time.
//
//   waiting --room--> reserved --chunk--> receiving --complete--> injected --claim--> claimed --consumed--> consumed
//
// A sink is what takes the bytes of a reservation on the receiving thread (ec_intake.h). While one is open, the blocks
// are not given up: they are closing until it has let go. The transitions are the table at the top of ec_receiver.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "encoder_cache/ec_transfer.h"

namespace transept {

enum class EcReceiverState : uint8_t {
  kWaiting,    // for room
  kReserved,   // room is held and the sink is open
  kReceiving,  // bytes have come
  kInjected,   // the output is here, for a request that has not come
  kClaimed,    // its request has it
  kClosing,    // ended; room is held until the sink has let go
  kReopening,  // the same, but a newer attempt takes the room over
  kConsumed,   // over: the output was here. Remembered for a while, as is kExpired
  kExpired,    // over: it never came, or it was cancelled
};
inline constexpr int kNumEcReceiverStates = 9;

enum class EcReceiverEvent : uint8_t {
  // What the sender of the current attempt says.
  kAnnounced,  // again
  kQuery,
  kCancel,
  kNewAttempt,  // a later attempt was announced, by whomever
  // What the table finds.
  kRoom,
  kHit,    // an equal output is here
  kNever,  // there will not be room
  // What the receiving thread says.
  kChunk,
  kComplete,  // all bytes were taken; the sink has let go
  kMismatch,  // the same, but an output of this digest and of another length is here
  kLetGo,     // the sink has let go
  // What the request does.
  kClaim,
  kConsume,
  kAbort,
  kTime,  // time has passed: next_time()
  // What the receiver finds itself.
  kLeaseOver,
  kDeadline,
  kUnclaimed,
};
inline constexpr int kNumEcReceiverEvents = 18;

enum class EcReceiverAction : uint8_t {
  // Channel 0
  kSendAllocated,
  kSendHit,
  kSendWait,
  kSendNever,
  kSendGone,
  // Channel 1
  kSendInjected,
  kSendNotInjected,  // gone
  kSendMismatch,     // incompatible
  kSendCancel,
  kOpenSink,   // before kSendAllocated; draws the reservation
  kCloseSink,  // kLetGo must follow, also if there is no such sink any longer
  kRelease,    // the room is no longer held
  kTellReady,  // the engine: the output is here
};

class EcReceiver final {
 public:
  // An announcement that waits for room.
  EcReceiver(InstanceId from, EcMeta meta, TimePoint now, const EcTimes& times);
  // One that was cancelled before it came: kExpired.
  static EcReceiver cancelled(InstanceId from, EcKey key, TimePoint now, const EcTimes& times);

  // Appends what is to be done, in order. Events that mean nothing in this state do nothing.
  void on(EcReceiverEvent event, TimePoint now, std::vector<EcReceiverAction>& actions);
  // The output was announced: again, or as a newer attempt, which takes the older one's place. Returns false, and does
  // nothing, if it is of an older attempt, or of this attempt and another sender: that one is gone.
  // REQUIRES: has_same_output(meta), and not (is_over() and is_newer(meta.key)): then this is forgotten first.
  bool on_metadata(const InstanceId& from, const EcMeta& meta, TimePoint now, std::vector<EcReceiverAction>& actions);

  bool is_sender(const InstanceId& from, const EcKey& key) const { return from == from_ && key == meta_.key; }
  bool is_newer(const EcKey& key) const { return key.attempt > meta_.key.attempt; }
  bool has_same_output(const EcMeta& meta) const;

  // When to call on(kTime) at the latest; TimePoint::max(): never.
  TimePoint next_time() const;

  EcReceiverState state() const { return state_; }
  bool is_over() const { return state_ == EcReceiverState::kConsumed || state_ == EcReceiverState::kExpired; }
  bool is_forgotten(TimePoint now) const { return is_over() && now >= forget_at_; }
  // Whether room is held for it.
  bool has_room() const { return state_ != EcReceiverState::kWaiting && !is_over(); }
  const InstanceId& from() const { return from_; }
  const EcMeta& meta() const { return meta_; }
  const EcKey& key() const { return meta_.key; }

 private:
  void apply(EcReceiverEvent event, TimePoint now, std::vector<EcReceiverAction>& actions);

  InstanceId from_;  // the sender of the newest attempt
  EcMeta meta_;      // of the newest attempt
  EcTimes times_;
  EcReceiverState state_ = EcReceiverState::kWaiting;
  TimePoint deadline_;
  TimePoint lease_until_;
  TimePoint unclaimed_until_ = TimePoint::max();
  TimePoint forget_at_ = TimePoint::max();
};

}  // namespace transept
