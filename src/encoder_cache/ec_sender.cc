#include "encoder_cache/ec_sender.h"

#include <utility>

#include "base/check.h"
#include "encoder_cache/ec_transitions.h"

namespace transept {
namespace {

using S = EcSenderState;
using E = EcSenderEvent;
using A = EcSenderAction;

constexpr unsigned kAnyLive = in(S::kQueued, S::kAnnounced, S::kGranted, S::kSending, S::kSent);

// The first row that fits is taken; none: the event means nothing in that state. kAllocated leads to kGranted; where
// the encode has ended already, kEncoded follows at once.
constexpr EcTransition<S, E, A> kTransitions[] = {
    {in(S::kQueued), E::kStart, S::kAnnounced, {A::kSendMetadata}},
    {in(S::kAnnounced), E::kAllocated, S::kGranted},
    {in(S::kGranted), E::kEncoded, S::kSending, {A::kSendCache}},
    {in(S::kSending), E::kSendDone, S::kSent},

    // The output is there, by these bytes or by others: also before the allocation was heard of.
    {in(S::kSending), E::kHit, S::kDone, {A::kStopSending, A::kAnswer}},
    {in(S::kSending), E::kInjected, S::kDone, {A::kStopSending, A::kAnswer}},
    {kAnyLive, E::kHit, S::kDone, {A::kAnswer}},
    {kAnyLive, E::kInjected, S::kDone, {A::kAnswer}},

    // Said again. A grant that waits for its encode is renewed by the announcement.
    {in(S::kAnnounced), E::kAgain, S::kAnnounced, {A::kSendMetadata}},
    {in(S::kGranted), E::kAgain, S::kGranted, {A::kSendMetadata}},
    {in(S::kSent), E::kAgain, S::kSent, {A::kSendQuery}},
    {in(S::kSent), E::kUnfinished, S::kSending, {A::kSendCache}},

    // A new attempt.
    {in(S::kAnnounced), E::kGone, S::kAnnounced, {A::kSendMetadata}},
    {in(S::kGranted), E::kGone, S::kAnnounced, {A::kSendMetadata}},
    {in(S::kSent), E::kGone, S::kAnnounced, {A::kSendMetadata}},
    {in(S::kSending), E::kGone, S::kAnnounced, {A::kStopSending, A::kSendMetadata}},
    {in(S::kSending), E::kStalled, S::kAnnounced, {A::kStopSending, A::kSendMetadata}},
    {in(S::kSending), E::kSendFailed, S::kAnnounced, {A::kSendMetadata}},
    {in(S::kSending), E::kAttemptsOver, S::kFailed, {A::kStopSending, A::kSendCancel, A::kAnswer}},
    {kAnyLive, E::kAttemptsOver, S::kFailed, {A::kSendCancel, A::kAnswer}},

    // The receiver has nothing that a cancel would end.
    {in(S::kSending), E::kNever, S::kFailed, {A::kStopSending, A::kAnswer}},
    {in(S::kSending), E::kIncompatible, S::kFailed, {A::kStopSending, A::kAnswer}},
    {in(S::kSending), E::kCancelled, S::kFailed, {A::kStopSending, A::kAnswer}},
    {kAnyLive, E::kNever, S::kFailed, {A::kAnswer}},
    {kAnyLive, E::kIncompatible, S::kFailed, {A::kAnswer}},
    {kAnyLive, E::kCancelled, S::kFailed, {A::kAnswer}},

    // Given up. Nothing was said of a transfer in the queue.
    {in(S::kQueued), E::kAbort, S::kFailed, {A::kAnswer}},
    {in(S::kQueued), E::kDeadline, S::kFailed, {A::kAnswer}},
    {in(S::kQueued), E::kPeerGone, S::kFailed, {A::kAnswer}},
    {in(S::kSending), E::kAbort, S::kFailed, {A::kStopSending, A::kSendCancel, A::kAnswer}},
    {in(S::kSending), E::kDeadline, S::kFailed, {A::kStopSending, A::kSendCancel, A::kAnswer}},
    {in(S::kSending), E::kPeerGone, S::kFailed, {A::kStopSending, A::kSendCancel, A::kAnswer}},
    {in(S::kSending), E::kOutboxFull, S::kFailed, {A::kStopSending, A::kAnswer}},
    {kAnyLive, E::kAbort, S::kFailed, {A::kSendCancel, A::kAnswer}},
    {kAnyLive, E::kDeadline, S::kFailed, {A::kSendCancel, A::kAnswer}},
    {kAnyLive, E::kPeerGone, S::kFailed, {A::kSendCancel, A::kAnswer}},
    {kAnyLive, E::kNoAnswer, S::kFailed, {A::kSendCancel, A::kAnswer}},
    {kAnyLive, E::kOutboxFull, S::kFailed, {A::kAnswer}},
};

E event_of(EcVerdict verdict, E good) {
  switch (verdict) {
    case EcVerdict::kAllocated: return good;
    case EcVerdict::kHit: return E::kHit;
    case EcVerdict::kWait: return E::kWait;
    case EcVerdict::kNever: return E::kNever;
    case EcVerdict::kIncompatible: return E::kIncompatible;
    case EcVerdict::kBusy: return E::kBusy;
    case EcVerdict::kGone: return E::kGone;
  }
  return E::kGone;
}

}  // namespace

EcSender::EcSender(EcMeta meta, TimePoint now, const EcTimes& times, uint64_t seed)
    : meta_(std::move(meta)), deadline_(now + meta_.time_left), times_(times), retry_(times, seed) {}

EcMeta EcSender::meta(TimePoint now) const {
  EcMeta meta = meta_;
  meta.time_left = std::max(deadline_ - now, Duration::zero());
  return meta;
}

// ---- Events

void EcSender::on_allocation(const EcAllocation& allocation, TimePoint now, std::vector<EcSenderAction>& actions) {
  if (allocation.key != meta_.key || is_over()) return;
  if (allocation.verdict == EcVerdict::kAllocated) {
    reservation_ = allocation.reservation;
    bulk_address_ = allocation.bulk_address;
  }
  on(event_of(allocation.verdict, E::kAllocated), now, actions);
}

void EcSender::on_injection(const EcInjection& injection, TimePoint now, std::vector<EcSenderAction>& actions) {
  if (injection.key != meta_.key) return;
  on(event_of(injection.verdict, E::kInjected), now, actions);
}

void EcSender::on(E event, TimePoint now, std::vector<EcSenderAction>& actions) {
  if (is_over()) return;
  switch (event) {
    case E::kTime: return on_time(now, actions);
    case E::kAllocated:
    case E::kWait:
    case E::kBusy: return note_answer(event, now, actions);
    case E::kGone:
    case E::kStalled:
    case E::kSendFailed: return next_attempt(event, now, actions);
    case E::kPathAway: is_path_away_ = true; return;
    case E::kPathBack:
      // What was said may have been lost with the path: it is said again now, and counts from the beginning.
      if (std::exchange(is_path_away_, false) && retry_.at() != TimePoint::max()) {
        num_unanswered_ = 0;
        retry_.restart_at(now);
      }
      return;
    case E::kSendProgress:
      if (state_ == S::kSending) stall_at_ = now + times_.lease;
      return;
    case E::kEncoded: is_encoded_ = true; break;
    default: break;
  }
  apply(event, now, actions);
}

// An answer that does not end the transfer: the receiver lives.
void EcSender::note_answer(E event, TimePoint now, std::vector<EcSenderAction>& actions) {
  num_unanswered_ = 0;
  if (event == E::kAllocated && state_ == S::kSent && ++num_unfinished_ >= times_.max_unfinished) {
    return apply(E::kUnfinished, now, actions);
  }
  if (event == E::kWait && state_ == S::kAnnounced) return retry_.push_back(now);
  if (event == E::kAllocated && state_ == S::kGranted) return retry_.restart_at(now + times_.renewal());
  apply(event, now, actions);
  if (state_ == S::kGranted && is_encoded_) apply(E::kEncoded, now, actions);
}

// REQUIRES: the event ends this attempt, if it means anything in this state.
void EcSender::next_attempt(E event, TimePoint now, std::vector<EcSenderAction>& actions) {
  if (state_ == S::kQueued || (event != E::kGone && state_ != S::kSending)) return;
  if (num_new_attempts_ >= times_.max_new_attempts) return apply(E::kAttemptsOver, now, actions);
  ++num_new_attempts_;
  ++meta_.key.attempt;
  reservation_ = 0;
  bulk_address_.clear();
  apply(event, now, actions);
}

void EcSender::apply(E event, TimePoint now, std::vector<EcSenderAction>& actions) {
  const auto* const row = find_transition(kTransitions, state_, event);
  if (row == nullptr) return;
  actions.insert(actions.end(), row->actions().begin(), row->actions().end());
  state_ = row->to;
  if (is_over()) end_ = event;
  set_timers(event, now);
}

// ---- Time

void EcSender::on_time(TimePoint now, std::vector<EcSenderAction>& actions) {
  if (now >= deadline_) return apply(E::kDeadline, now, actions);
  if (now >= stall_at_) return next_attempt(E::kStalled, now, actions);
  if (now < retry_.at() || is_path_away_) return;
  if (num_unanswered_ >= times_.max_unanswered) return apply(E::kNoAnswer, now, actions);
  ++num_unanswered_;
  apply(E::kAgain, now, actions);
}

// After a transition by `event`.
void EcSender::set_timers(E event, TimePoint now) {
  stall_at_ = state_ == S::kSending ? now + times_.lease : TimePoint::max();
  switch (state_) {
    case S::kAnnounced:
    case S::kSent:
      if (event == E::kAgain) return retry_.back_off(now);
      num_unanswered_ = 0;
      num_unfinished_ = 0;
      return retry_.restart(now);
    case S::kGranted:
      if (event == E::kAgain) return retry_.back_off(now);
      return retry_.restart_at(now + times_.renewal());
    default: return retry_.stop();
  }
}

TimePoint EcSender::next_time() const {
  if (is_over()) return TimePoint::max();
  return std::min({deadline_, stall_at_, is_path_away_ ? TimePoint::max() : retry_.at()});
}

// ---- The answer

Status EcSender::status() const {
  CHECK(is_over(), "a transfer that goes on");
  if (state_ == S::kDone) return ok_status();
  const std::string what = str_cat("encoder output ", meta_.key.input_id, " of request ", meta_.key.request_id, ": ");
  switch (end_) {
    case E::kDeadline: return absl::DeadlineExceededError(str_cat(what, "not injected before the deadline"));
    case E::kAbort: return absl::CancelledError(str_cat(what, "aborted"));
    case E::kCancelled: return absl::CancelledError(str_cat(what, "cancelled by the decode instance"));
    case E::kNever: return resource_exhausted(what, "larger than the decode instance's room for encoder outputs");
    case E::kIncompatible:
      return absl::FailedPreconditionError(str_cat(what,
                                                   "the decode instance has another model, --ec-transfer-dtype (here ",
                                                   dtype_name(meta_.dtype), ") or version"));
    case E::kPeerGone: return absl::UnavailableError(str_cat(what, "the decode instance has gone"));
    case E::kNoAnswer: return absl::UnavailableError(str_cat(what, "the decode instance does not answer"));
    // Nothing of the decode instance: another encode instance, or a later try, may find the broker well.
    case E::kOutboxFull: return absl::AbortedError(str_cat(what, "the broker, or the queue to it, is full"));
    default: return absl::UnavailableError(str_cat(what, "not injected in ", num_new_attempts_ + 1, " attempts"));
  }
}

EcOutcome EcSender::outcome() const {
  CHECK(is_over(), "a transfer that goes on");
  switch (end_) {
    case E::kHit: return EcOutcome::kHit;
    case E::kInjected: return EcOutcome::kInjected;
    case E::kDeadline: return EcOutcome::kExpired;
    case E::kAbort:
    case E::kCancelled: return EcOutcome::kCancelled;
    case E::kNever: return EcOutcome::kNever;
    case E::kIncompatible: return EcOutcome::kIncompatible;
    case E::kOutboxFull: return EcOutcome::kBusy;
    default: return EcOutcome::kGone;
  }
}

}  // namespace transept
