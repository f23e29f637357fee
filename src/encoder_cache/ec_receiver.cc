#include "encoder_cache/ec_receiver.h"

#include <algorithm>
#include <utility>

#include "encoder_cache/ec_transitions.h"

namespace transept {
namespace {

using S = EcReceiverState;
using E = EcReceiverEvent;
using A = EcReceiverAction;

constexpr unsigned kWithSink = in(S::kReserved, S::kReceiving);

// At most one row fits; none: the event means nothing in that state.
constexpr EcTransition<S, E, A> kTransitions[] = {
    {in(S::kWaiting), E::kRoom, S::kReserved, {A::kOpenSink, A::kSendAllocated}},
    {in(S::kWaiting), E::kHit, S::kInjected, {A::kSendHit, A::kTellReady}},
    {in(S::kWaiting), E::kNever, S::kExpired, {A::kSendNever}},
    {in(S::kWaiting), E::kMismatch, S::kExpired, {A::kSendMismatch}},
    {kWithSink, E::kChunk, S::kReceiving},
    {kWithSink, E::kComplete, S::kInjected, {A::kSendInjected, A::kTellReady}},
    {kWithSink, E::kMismatch, S::kExpired, {A::kRelease, A::kSendMismatch}},
    {in(S::kInjected), E::kClaim, S::kClaimed},
    {in(S::kClaimed), E::kConsume, S::kConsumed, {A::kRelease}},

    // Asked again: the answer is that of the state.
    {in(S::kWaiting), E::kAnnounced, S::kWaiting, {A::kSendWait}},
    {in(S::kWaiting), E::kQuery, S::kWaiting, {A::kSendWait}},
    {in(S::kReserved), E::kAnnounced, S::kReserved, {A::kSendAllocated}},
    {in(S::kReserved), E::kQuery, S::kReserved, {A::kSendAllocated}},
    {in(S::kReceiving), E::kAnnounced, S::kReceiving, {A::kSendAllocated}},
    {in(S::kReceiving), E::kQuery, S::kReceiving, {A::kSendAllocated}},
    {in(S::kInjected), E::kAnnounced, S::kInjected, {A::kSendHit}},
    {in(S::kInjected), E::kQuery, S::kInjected, {A::kSendInjected}},
    {in(S::kClaimed), E::kAnnounced, S::kClaimed, {A::kSendHit}},
    {in(S::kClaimed), E::kQuery, S::kClaimed, {A::kSendInjected}},
    {in(S::kClosing), E::kAnnounced, S::kClosing, {A::kSendGone}},
    {in(S::kClosing), E::kQuery, S::kClosing, {A::kSendNotInjected}},
    {in(S::kReopening), E::kAnnounced, S::kReopening, {A::kSendWait}},
    {in(S::kReopening), E::kQuery, S::kReopening, {A::kSendWait}},
    {in(S::kConsumed), E::kAnnounced, S::kConsumed, {A::kSendHit}},
    {in(S::kConsumed), E::kQuery, S::kConsumed, {A::kSendInjected}},
    {in(S::kExpired), E::kAnnounced, S::kExpired, {A::kSendGone}},
    {in(S::kExpired), E::kQuery, S::kExpired, {A::kSendNotInjected}},

    // A newer attempt has the older one's place in the queue, its room, or its output.
    {in(S::kWaiting), E::kNewAttempt, S::kWaiting, {A::kSendWait}},
    {kWithSink, E::kNewAttempt, S::kReopening, {A::kCloseSink, A::kSendWait}},
    {in(S::kClosing), E::kNewAttempt, S::kReopening, {A::kSendWait}},
    {in(S::kReopening), E::kNewAttempt, S::kReopening, {A::kSendWait}},
    {in(S::kReopening), E::kLetGo, S::kReserved, {A::kOpenSink, A::kSendAllocated}},
    {in(S::kInjected), E::kNewAttempt, S::kInjected, {A::kSendHit}},
    {in(S::kClaimed), E::kNewAttempt, S::kClaimed, {A::kSendHit}},

    // Given up. Whoever finds that time is over, or that nobody wants the output, tells the sender.
    {in(S::kWaiting), E::kCancel, S::kExpired},
    {in(S::kWaiting), E::kLeaseOver, S::kExpired},
    {in(S::kWaiting), E::kDeadline, S::kExpired, {A::kSendCancel}},
    {in(S::kWaiting), E::kAbort, S::kExpired, {A::kSendCancel}},
    {kWithSink, E::kCancel, S::kClosing, {A::kCloseSink}},
    {kWithSink, E::kLeaseOver, S::kClosing, {A::kCloseSink}},
    {kWithSink, E::kDeadline, S::kClosing, {A::kCloseSink, A::kSendCancel}},
    {kWithSink, E::kAbort, S::kClosing, {A::kCloseSink, A::kSendCancel}},
    {in(S::kReopening), E::kCancel, S::kClosing},
    {in(S::kReopening), E::kDeadline, S::kClosing, {A::kSendCancel}},
    {in(S::kReopening), E::kAbort, S::kClosing, {A::kSendCancel}},
    {in(S::kClosing), E::kLetGo, S::kExpired, {A::kRelease}},
    {in(S::kInjected), E::kCancel, S::kExpired, {A::kRelease}},
    {in(S::kInjected), E::kUnclaimed, S::kConsumed, {A::kRelease}},
    {in(S::kInjected), E::kDeadline, S::kConsumed, {A::kRelease}},
    {in(S::kInjected), E::kAbort, S::kConsumed, {A::kRelease}},
    {in(S::kClaimed), E::kAbort, S::kConsumed, {A::kRelease}},
};

}  // namespace

EcReceiver::EcReceiver(InstanceId from, EcMeta meta, TimePoint now, const EcTimes& times)
    : from_(std::move(from)),
      meta_(std::move(meta)),
      times_(times),
      deadline_(now + meta_.time_left),
      lease_until_(now + times.lease) {}

EcReceiver EcReceiver::cancelled(InstanceId from, EcKey key, TimePoint now, const EcTimes& times) {
  EcMeta meta;
  meta.key = std::move(key);
  EcReceiver receiver(std::move(from), std::move(meta), now, times);
  std::vector<A> none;
  receiver.on(E::kCancel, now, none);
  return receiver;
}

bool EcReceiver::has_same_output(const EcMeta& meta) const {
  return meta.digest == meta_.digest && meta.num_positions == meta_.num_positions && meta.width == meta_.width;
}

bool EcReceiver::on_metadata(const InstanceId& from, const EcMeta& meta, TimePoint now, std::vector<A>& actions) {
  if (is_newer(meta.key)) {
    from_ = from;
    meta_ = meta;
    deadline_ = now + meta.time_left;
    on(E::kNewAttempt, now, actions);
    return true;
  }
  if (!is_sender(from, meta.key)) return false;
  // The message that took least time on its way says best how much is left.
  deadline_ = std::min(deadline_, now + meta.time_left);
  on(E::kAnnounced, now, actions);
  return true;
}

void EcReceiver::on(E event, TimePoint now, std::vector<A>& actions) {
  if (event != E::kTime) return apply(event, now, actions);
  if (now >= deadline_) return apply(E::kDeadline, now, actions);
  if (now >= lease_until_) return apply(E::kLeaseOver, now, actions);
  if (now >= unclaimed_until_) apply(E::kUnclaimed, now, actions);
}

void EcReceiver::apply(E event, TimePoint now, std::vector<A>& actions) {
  const auto* const row = find_transition(kTransitions, state_, event);
  if (row == nullptr) return;
  actions.insert(actions.end(), row->actions().begin(), row->actions().end());
  const bool is_new_state = state_ != row->to;
  state_ = row->to;
  // Every message of the sender renews the lease; so does room that was given a moment ago.
  lease_until_ = state_ == S::kWaiting || (kWithSink & in(state_)) != 0 ? now + times_.lease : TimePoint::max();
  if (is_new_state && state_ == S::kInjected) unclaimed_until_ = now + times_.unclaimed;
  if (is_new_state && is_over()) forget_at_ = now + times_.tombstone();
}

TimePoint EcReceiver::next_time() const {
  if (is_over()) return forget_at_;
  switch (state_) {
    case S::kWaiting:
    case S::kReserved:
    case S::kReceiving: return std::min(deadline_, lease_until_);
    case S::kReopening: return deadline_;
    case S::kInjected: return std::min(deadline_, unclaimed_until_);
    default: return TimePoint::max();
  }
}

}  // namespace transept
