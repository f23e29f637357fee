#include "encoder_cache/ec_sender_table.h"

#include <utility>

namespace transept {

using E = EcSenderEvent;
using A = EcSenderAction;

EcSenderTable::EcSenderTable(const Options& options) : options_(options) {}

// ---- What the engine says

Status EcSenderTable::add(const InstanceId& to, EcMeta meta, TimePoint now, Outputs& outputs) {
  const EcInput input = input_of(meta.key);
  const auto what = [&] { return str_cat("encoder output ", input.input_id, " of request ", input.request_id); };
  if (entries_.contains(input)) return absl::AlreadyExistsError(str_cat(what(), ": is in flight"));
  if (entries_.size() >= options_.max_transfers) {
    return resource_exhausted(what(), ": ", entries_.size(), " outputs are in flight");
  }
  const uint64_t seed = options_.seed + ++num_added_;
  Entry entry{to, EcSender(std::move(meta), now, options_.times, seed)};
  Entry& added = entries_.emplace(input, std::move(entry)).first->second;
  if (is_path_away_) step(added, E::kPathAway, now, outputs);
  step(added, E::kStart, now, outputs);
  return ok_status();
}

void EcSenderTable::on_encoded(const EcInput& input, TimePoint now, Outputs& outputs) {
  const auto entry = entries_.find(input);
  if (entry != entries_.end()) step(entry->second, E::kEncoded, now, outputs);
}

void EcSenderTable::abort(const EcInput& input, TimePoint now, Outputs& outputs) {
  if (const auto entry = entries_.find(input); entry != entries_.end()) step(entry->second, E::kAbort, now, outputs);
}

// ---- What peers and the transport say

EcSenderTable::Entry* EcSenderTable::find_asked(const InstanceId& from, const EcKey& key) {
  const auto entry = entries_.find(input_of(key));
  return entry == entries_.end() || entry->second.to.name != from.name ? nullptr : &entry->second;
}

void EcSenderTable::on_allocation(const InstanceId& from, const EcAllocation& allocation, TimePoint now,
                                  Outputs& outputs) {
  Entry* entry = find_asked(from, allocation.key);
  if (entry == nullptr) return;
  Actions actions;
  entry->sender.on_allocation(allocation, now, actions);
  settle(*entry, actions, now, outputs);
}

void EcSenderTable::on_injection(const InstanceId& from, const EcInjection& injection, TimePoint now,
                                 Outputs& outputs) {
  Entry* entry = find_asked(from, injection.key);
  if (entry == nullptr) return;
  Actions actions;
  entry->sender.on_injection(injection, now, actions);
  settle(*entry, actions, now, outputs);
}

void EcSenderTable::on_cancel(const InstanceId& from, const EcKey& key, TimePoint now, Outputs& outputs) {
  Entry* entry = find_asked(from, key);
  if (entry != nullptr && entry->sender.key() == key) step(*entry, E::kCancelled, now, outputs);
}

void EcSenderTable::on_transport(E event, const EcKey& key, TimePoint now, Outputs& outputs) {
  const auto entry = entries_.find(input_of(key));
  if (entry == entries_.end() || entry->second.sender.key() != key) return;
  step(entry->second, event, now, outputs);
}

void EcSenderTable::on_path(bool is_away, TimePoint now) {
  is_path_away_ = is_away;
  Outputs none;
  for (auto& [input, entry] : entries_) step(entry, is_away ? E::kPathAway : E::kPathBack, now, none);
}

void EcSenderTable::on_peer_gone(const InstanceId& peer, TimePoint now, Outputs& outputs) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    Entry& asked = (entry++)->second;
    if (asked.to == peer) step(asked, E::kPeerGone, now, outputs);
  }
}

// ---- Time

void EcSenderTable::on_time(TimePoint now, Outputs& outputs) {
  while (timers_.next_time() <= now) step(entries_.at(timers_.next()), E::kTime, now, outputs);
}

// ---- Entries

void EcSenderTable::step(Entry& entry, E event, TimePoint now, Outputs& outputs) {
  Actions actions;
  entry.sender.on(event, now, actions);
  settle(entry, actions, now, outputs);
}

// What a transition was. It may have passed several states: a grant of what is encoded already is sent at once.
void EcSenderTable::count(Entry& entry, const Actions& actions, TimePoint now) {
  using S = EcSenderState;
  const EcSender& sender = entry.sender;
  const S before = entry.seen, state = sender.state();
  for (const A action : actions) {
    const bool is_again = action == A::kSendQuery || (action == A::kSendMetadata && before != S::kQueued) ||
                          (action == A::kSendCache && before == S::kSent);
    if (is_again) ++stats_.num_retries;
  }
  if (sender.is_over()) {
    stats_.end(sender.outcome());
    if (sender.outcome() == EcOutcome::kExpired) ++stats_.num_expired;
  }
  if (state == before) return;
  const bool is_injected = state == S::kDone && sender.outcome() == EcOutcome::kInjected;
  const bool is_answered = state == S::kGranted || state == S::kSending || state == S::kDone;
  if (before == S::kAnnounced && is_answered) stats_.observe(EcPhase::kAnnounce, now - entry.since);
  if (before == S::kSending && (state == S::kSent || is_injected)) {
    stats_.observe(EcPhase::kSend, now - entry.since);
    stats_.num_bytes += static_cast<int64_t>(ec_payload_bytes(sender.meta(now)));
  }
  if (before == S::kSent && is_injected) stats_.observe(EcPhase::kInject, now - entry.since);
  entry.seen = state;
  entry.since = now;
}

// Says what a transition did, and erases the entry if it is over.
void EcSenderTable::settle(Entry& entry, const Actions& actions, TimePoint now, Outputs& outputs) {
  const EcSender& sender = entry.sender;
  count(entry, actions, now);
  for (const A action : actions) {
    EcSenderOutput output;
    output.action = action;
    output.to = entry.to;
    if (action == A::kSendMetadata) {
      output.meta = sender.meta(now);
    } else {
      output.meta.key = sender.key();
    }
    if (action == A::kSendCache) {
      output.reservation = sender.reservation();
      output.bulk_address = sender.bulk_address();
    }
    if (action == A::kAnswer) output.status = sender.status();
    outputs.push_back(std::move(output));
  }
  const EcInput input = input_of(sender.key());
  timers_.move(input, entry.timer, sender.next_time());
  if (sender.is_over()) entries_.erase(input);
}

}  // namespace transept
