#include "encoder_cache/ec_receiver.h"

#include <algorithm>
#include <array>
#include <utility>

namespace transept {
namespace {

using S = EcReceiverState;
using E = EcReceiverEvent;
using A = EcReceiverAction;

constexpr unsigned in(S state) { return 1u << static_cast<unsigned>(state); }
constexpr unsigned kWithSink = in(S::kReserved) | in(S::kReceiving);

struct Transition {
  unsigned from;
  E event;
  S to;
  std::array<A, 3> actions = {};
  int num_actions = 0;
};

constexpr Transition on(unsigned from, E event, S to) { return {from, event, to}; }
constexpr Transition on(unsigned from, E event, S to, A a) { return {from, event, to, {a}, 1}; }
constexpr Transition on(unsigned from, E event, S to, A a, A b) { return {from, event, to, {a, b}, 2}; }
constexpr Transition on(unsigned from, E event, S to, A a, A b, A c) { return {from, event, to, {a, b, c}, 3}; }

// At most one row fits; none: the event means nothing in that state.
constexpr Transition kTransitions[] = {
    on(in(S::kWaiting), E::kRoom, S::kReserved, A::kOpenSink, A::kSendAllocated),
    on(in(S::kWaiting), E::kHit, S::kInjected, A::kSendHit, A::kTellReady),
    on(in(S::kWaiting), E::kNever, S::kExpired, A::kSendNever),
    on(in(S::kWaiting), E::kMismatch, S::kExpired, A::kSendMismatch),
    on(kWithSink, E::kChunk, S::kReceiving),
    on(kWithSink, E::kComplete, S::kInjected, A::kSendInjected, A::kTellReady),
    on(kWithSink, E::kMismatch, S::kExpired, A::kRelease, A::kSendMismatch),
    on(in(S::kInjected), E::kClaim, S::kClaimed),
    on(in(S::kClaimed), E::kConsume, S::kConsumed, A::kRelease),

    // Asked again: the answer is that of the state.
    on(in(S::kWaiting), E::kAnnounced, S::kWaiting, A::kSendWait),
    on(in(S::kWaiting), E::kQuery, S::kWaiting, A::kSendWait),
    on(in(S::kReserved), E::kAnnounced, S::kReserved, A::kSendAllocated),
    on(in(S::kReserved), E::kQuery, S::kReserved, A::kSendAllocated),
    on(in(S::kReceiving), E::kAnnounced, S::kReceiving, A::kSendAllocated),
    on(in(S::kReceiving), E::kQuery, S::kReceiving, A::kSendAllocated),
    on(in(S::kInjected), E::kAnnounced, S::kInjected, A::kSendHit),
    on(in(S::kInjected), E::kQuery, S::kInjected, A::kSendInjected),
    on(in(S::kClaimed), E::kAnnounced, S::kClaimed, A::kSendHit),
    on(in(S::kClaimed), E::kQuery, S::kClaimed, A::kSendInjected),
    on(in(S::kClosing), E::kAnnounced, S::kClosing, A::kSendGone),
    on(in(S::kClosing), E::kQuery, S::kClosing, A::kSendNotInjected),
    on(in(S::kReopening), E::kAnnounced, S::kReopening, A::kSendWait),
    on(in(S::kReopening), E::kQuery, S::kReopening, A::kSendWait),
    on(in(S::kConsumed), E::kAnnounced, S::kConsumed, A::kSendHit),
    on(in(S::kConsumed), E::kQuery, S::kConsumed, A::kSendInjected),
    on(in(S::kExpired), E::kAnnounced, S::kExpired, A::kSendGone),
    on(in(S::kExpired), E::kQuery, S::kExpired, A::kSendNotInjected),

    // A newer attempt has the older one's place in the queue, its room, or its output.
    on(in(S::kWaiting), E::kNewAttempt, S::kWaiting, A::kSendWait),
    on(kWithSink, E::kNewAttempt, S::kReopening, A::kCloseSink, A::kSendWait),
    on(in(S::kClosing), E::kNewAttempt, S::kReopening, A::kSendWait),
    on(in(S::kReopening), E::kNewAttempt, S::kReopening, A::kSendWait),
    on(in(S::kReopening), E::kLetGo, S::kReserved, A::kOpenSink, A::kSendAllocated),
    on(in(S::kInjected), E::kNewAttempt, S::kInjected, A::kSendHit),
    on(in(S::kClaimed), E::kNewAttempt, S::kClaimed, A::kSendHit),

    // Given up. Whoever finds that time is over, or that nobody wants the output, tells the sender.
    on(in(S::kWaiting), E::kCancel, S::kExpired),
    on(in(S::kWaiting), E::kLeaseOver, S::kExpired),
    on(in(S::kWaiting), E::kDeadline, S::kExpired, A::kSendCancel),
    on(in(S::kWaiting), E::kAbort, S::kExpired, A::kSendCancel),
    on(kWithSink, E::kCancel, S::kClosing, A::kCloseSink),
    on(kWithSink, E::kLeaseOver, S::kClosing, A::kCloseSink),
    on(kWithSink, E::kDeadline, S::kClosing, A::kCloseSink, A::kSendCancel),
    on(kWithSink, E::kAbort, S::kClosing, A::kCloseSink, A::kSendCancel),
    on(in(S::kReopening), E::kCancel, S::kClosing),
    on(in(S::kReopening), E::kDeadline, S::kClosing, A::kSendCancel),
    on(in(S::kReopening), E::kAbort, S::kClosing, A::kSendCancel),
    on(in(S::kClosing), E::kLetGo, S::kExpired, A::kRelease),
    on(in(S::kInjected), E::kCancel, S::kExpired, A::kRelease),
    on(in(S::kInjected), E::kUnclaimed, S::kConsumed, A::kRelease),
    on(in(S::kInjected), E::kDeadline, S::kConsumed, A::kRelease),
    on(in(S::kInjected), E::kAbort, S::kConsumed, A::kRelease),
    on(in(S::kClaimed), E::kAbort, S::kConsumed, A::kRelease),
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
  return meta.digest == meta_.digest && meta.num_positions == meta_.num_positions;
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
  if (event != E::kTime) {
    apply(event, now, actions);
  } else if (now >= deadline_ && apply(E::kDeadline, now, actions)) {
    return;
  } else if (now >= lease_until_ && apply(E::kLeaseOver, now, actions)) {
    return;
  } else if (now >= unclaimed_until_) {
    apply(E::kUnclaimed, now, actions);
  }
}

bool EcReceiver::apply(E event, TimePoint now, std::vector<A>& actions) {
  const auto* const row = std::find_if(std::begin(kTransitions), std::end(kTransitions), [&](const Transition& t) {
    return t.event == event && (t.from & in(state_)) != 0;
  });
  if (row == std::end(kTransitions)) return false;
  actions.insert(actions.end(), row->actions.begin(), row->actions.begin() + row->num_actions);
  const bool is_new_state = state_ != row->to;
  state_ = row->to;
  // Every message of the sender renews the lease; so does room that was given a moment ago.
  lease_until_ = state_ == S::kWaiting || (kWithSink & in(state_)) != 0 ? now + times_.lease : TimePoint::max();
  if (!is_new_state) return true;
  if (state_ == S::kInjected) unclaimed_until_ = now + times_.unclaimed;
  if (is_over()) forget_at_ = now + times_.tombstone();
  return true;
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
