#include "encoder_cache/ec_receiver_table.h"

#include <algorithm>

#include "base/check.h"

namespace transept {
namespace {

using E = EcReceiverEvent;
using A = EcReceiverAction;
using Kind = EcReceiverOutput::Kind;

constexpr std::string_view kAsked = "(asked)";  // no instance has such a name

EcReceiverOutput message(Kind kind, const InstanceId& to, const EcKey& key, EcVerdict verdict) {
  EcReceiverOutput output;
  output.kind = kind;
  output.to = to;
  output.key = key;
  output.verdict = verdict;
  return output;
}

}  // namespace

EcReceiverTable::EcReceiverTable(EncoderCacheManager& cache, Options options, std::function<uint64_t()> draw)
    : cache_(cache), options_(std::move(options)), draw_(std::move(draw)) {}

EcReceiverTable::Entry* EcReceiverTable::find(const EcInput& input) {
  const auto entry = entries_.find(input);
  return entry == entries_.end() ? nullptr : &entry->second;
}

const EcReceiver* EcReceiverTable::find_receiver(const EcInput& input) const {
  const auto entry = entries_.find(input);
  return entry == entries_.end() ? nullptr : &entry->second.receiver;
}

// ---- What peers say

bool EcReceiverTable::is_compatible(const EcMeta& meta) const {
  return meta.model == options_.model && std::ranges::count(options_.widths, meta.width) > 0 &&
         meta.dtype == options_.dtype && !cache_.contradicts(meta);
}

void EcReceiverTable::on_metadata(const InstanceId& from, const EcMeta& meta, TimePoint now, Outputs& outputs,
                                  bool is_asked) {
  const EcInput input = input_of(meta.key);
  Entry* entry = find(input);
  // What is over begins again with a newer attempt.
  if (entry != nullptr && entry->receiver.is_over() && entry->receiver.is_newer(meta.key)) {
    forget(input);
    entry = nullptr;
  }
  if (entry == nullptr) return admit(from, meta, now, outputs, is_asked);
  EcVerdict refusal = EcVerdict::kGone;
  if (!entry->receiver.is_over() && (!is_compatible(meta) || !entry->receiver.has_same_output(meta))) {
    refusal = EcVerdict::kIncompatible;
  } else if (Actions actions; entry->receiver.on_metadata(from, meta, now, actions)) {
    return settle(*entry, actions, outputs);
  }
  refuse(from, meta.key, refusal, outputs);
}

// An announcement that ends with its answer.
void EcReceiverTable::refuse(const InstanceId& from, const EcKey& key, EcVerdict verdict, Outputs& outputs) {
  outputs.push_back(message(Kind::kAllocation, from, key, verdict));
  switch (verdict) {
    case EcVerdict::kHit: ++stats_.num_hits; return stats_.end(EcOutcome::kHit);
    case EcVerdict::kNever: return stats_.end(EcOutcome::kNever);
    case EcVerdict::kIncompatible: return stats_.end(EcOutcome::kIncompatible);
    case EcVerdict::kBusy: return stats_.end(EcOutcome::kBusy);
    default: return stats_.end(EcOutcome::kGone);
  }
}

// Whether a further announcement of this peer may wait.
bool EcReceiverTable::may_wait(const std::string& peer) const {
  if (num_waiting_ >= options_.max_waiting || num_transfers() >= options_.max_transfers) return false;
  const auto own = peers_.find(peer);
  if (own == peers_.end()) return true;
  if (own->second.waiting.size() >= options_.max_waiting - num_waiting_) return false;
  return !has_others_ || own->second.num_transfers < options_.max_transfers - num_transfers();
}

bool EcReceiverTable::is_held_back(const Peer& peer) const {
  if (!has_others_ || peer.num_slots == 0 || peer.waiting.empty()) return false;
  const int64_t wanted = cache_.num_slots_for(entries_.at(peer.waiting.front()).receiver.meta().num_positions);
  return peer.num_slots + wanted > cache_.num_freeable_slots() - wanted;
}

bool EcReceiverTable::is_held_back(const EcInput& input) const {
  const auto entry = entries_.find(input);
  if (entry == entries_.end() || entry->second.list != Entry::List::kWaiting) return false;
  return is_held_back(peers_.at(entry->second.peer));
}

// The announcement that has waited longest, of those that are not held back; null: none waits.
EcReceiverTable::Entry* EcReceiverTable::first_to_give() {
  Entry* first = nullptr;
  for (const auto& [name, peer] : peers_) {
    if (peer.waiting.empty()) continue;
    Entry& entry = entries_.at(peer.waiting.front());
    if ((first == nullptr || entry.arrival < first->arrival) && !is_held_back(peer)) first = &entry;
  }
  return first;
}

// An announcement of an input that is not known here.
void EcReceiverTable::admit(const InstanceId& from, const EcMeta& meta, TimePoint now, Outputs& outputs,
                            bool is_asked) {
  const EcInput input = input_of(meta.key);
  const auto answer = [&](EcVerdict verdict) { refuse(from, meta.key, verdict, outputs); };
  if (!is_compatible(meta)) return answer(EcVerdict::kIncompatible);
  if (cache_.has_use(input)) return answer(EcVerdict::kHit);  // its request found an equal output itself
  if (cache_.can_allocate_disag(meta) == AllocStatus::kNever) return answer(EcVerdict::kNever);
  const std::string peer = is_asked ? std::string(kAsked) : from.name;
  if (first_peer_.empty()) first_peer_ = peer;
  has_others_ = has_others_ || peer != first_peer_;
  if (!may_wait(peer)) return answer(EcVerdict::kBusy);
  Entry& entry = entries_.try_emplace(input, Entry{EcReceiver(from, meta, now, options_.times)}).first->second;
  entry.peer = peer;
  entry.arrival = ++num_announced_;
  settle_shares(entry);
  move_to(entry, Entry::List::kWaiting);
  timers_.move(input, entry.timer, entry.receiver.next_time());
  if (first_to_give() == &entry && give_room(entry, now, outputs)) return;
  outputs.push_back(message(Kind::kAllocation, from, meta.key, EcVerdict::kWait));
}

void EcReceiverTable::on_query(const InstanceId& from, const EcKey& key, TimePoint now, Outputs& outputs) {
  Entry* entry = find(input_of(key));
  if (entry != nullptr && entry->receiver.is_sender(from, key)) return step(*entry, E::kQuery, now, outputs);
  outputs.push_back(message(Kind::kInjection, from, key, EcVerdict::kGone));
}

// A cancel that overtook its announcement is remembered, so that the announcement takes no room.
void EcReceiverTable::on_cancel(const InstanceId& from, const EcKey& key, TimePoint now, Outputs& outputs) {
  const EcInput input = input_of(key);
  Entry* entry = find(input);
  if (entry != nullptr) {
    if (entry->receiver.is_sender(from, key)) step(*entry, E::kCancel, now, outputs);
    return;
  }
  Entry& added =
      entries_.try_emplace(input, Entry{EcReceiver::cancelled(from, key, now, options_.times)}).first->second;
  settle(added, {}, outputs);
}

// ---- Room

// Returns false if there is none now. REQUIRES: the entry is first_to_give().
bool EcReceiverTable::give_room(Entry& entry, TimePoint now, Outputs& outputs) {
  const EcMeta& meta = entry.receiver.meta();
  // An equal output may have come since the announcement, or a larger one of the same digest.
  if (cache_.contradicts(meta)) {
    step(entry, E::kMismatch, now, outputs);
    return true;
  }
  switch (cache_.can_allocate_disag(meta)) {
    case AllocStatus::kLater: return false;
    case AllocStatus::kNever: step(entry, E::kNever, now, outputs); return true;
    case AllocStatus::kOk: break;
  }
  const int64_t num_before = cache_.num_unwritten_slots();
  cache_.allocate_disag(meta);
  entry.num_slots = cache_.num_unwritten_slots() - num_before;
  peers_.at(entry.peer).num_slots += entry.num_slots;
  step(entry, cache_.is_written(input_of(meta.key)) ? E::kHit : E::kRoom, now, outputs);
  return true;
}

void EcReceiverTable::allocate_waiting(TimePoint now, int32_t max_given, Outputs& outputs) {
  for (; max_given > 0 && num_waiting_ > 0; --max_given) {
    Entry* const first = first_to_give();
    if (first == nullptr || !give_room(*first, now, outputs)) return;
  }
}

// ---- What the receiving thread says

void EcReceiverTable::on_chunk(uint64_t reservation, TimePoint now) {
  const auto sink = sinks_.find(reservation);
  if (sink == sinks_.end()) return;
  Outputs none;
  step(entries_.at(sink->second), E::kChunk, now, none);
}

void EcReceiverTable::on_complete(uint64_t reservation, TimePoint now, Outputs& outputs) {
  const auto sink = sinks_.find(reservation);
  if (sink == sinks_.end()) return;
  const EcInput input = sink->second;
  Entry& entry = entries_.at(input);
  const EcReceiverState state = entry.receiver.state();
  // One that is being closed is not taken any more; that it has let go follows.
  if (state != EcReceiverState::kReserved && state != EcReceiverState::kReceiving) return;
  sinks_.erase(sink);
  entry.reservation = 0;
  step(entry, cache_.mark_written(input) ? E::kComplete : E::kMismatch, now, outputs);
}

void EcReceiverTable::on_sink_closed(uint64_t reservation, TimePoint now, Outputs& outputs) {
  const auto sink = sinks_.find(reservation);
  if (sink == sinks_.end()) return;
  Entry& entry = entries_.at(sink->second);
  sinks_.erase(sink);
  entry.reservation = 0;
  step(entry, E::kLetGo, now, outputs);
}

// ---- What the request does

bool EcReceiverTable::claim(const std::string& request_id, int32_t num_inputs, TimePoint now, Outputs& outputs) {
  if (!cache_.has_cached_inputs(request_id, num_inputs)) return false;
  for (int32_t i = 0; i < num_inputs; ++i) {
    Entry* entry = find({request_id, static_cast<uint32_t>(i)});
    if (entry == nullptr) continue;
    // The request found an equal output itself while the announcement waited.
    step(*entry, E::kHit, now, outputs);
    step(*entry, E::kClaim, now, outputs);
  }
  return true;
}

void EcReceiverTable::consume(const EcInput& input, TimePoint now) {
  Entry* entry = find(input);
  if (entry == nullptr || entry->receiver.is_over()) return cache_.free_encoder_input(input);
  Outputs none;
  step(*entry, E::kConsume, now, none);
}

void EcReceiverTable::abort(const std::string& request_id, TimePoint now, Outputs& outputs) {
  std::vector<EcInput> inputs;
  for (auto entry = entries_.lower_bound({request_id, 0}); entry != entries_.end(); ++entry) {
    if (entry->first.request_id != request_id) break;
    if (!entry->second.receiver.is_over()) inputs.push_back(entry->first);
  }
  for (const EcInput& input : inputs) step(entries_.at(input), E::kAbort, now, outputs);
  // Uses that began at the manager end now; what a sink still holds is released when it has let go.
  for (const uint32_t input_id : cache_.inputs_of(request_id)) {
    const EcInput input{request_id, input_id};
    const Entry* entry = find(input);
    if (entry == nullptr || !entry->receiver.has_room()) cache_.free_encoder_input(input);
  }
}

// ---- Time

void EcReceiverTable::on_time(TimePoint now, Outputs& outputs, size_t max_inputs) {
  for (; max_inputs > 0 && timers_.next_time() <= now; --max_inputs) {
    const EcInput input = timers_.next();
    Entry& entry = entries_.at(input);
    if (entry.receiver.is_forgotten(now)) {
      forget(input);
    } else {
      step(entry, E::kTime, now, outputs);
    }
  }
}

// ---- Entries

void EcReceiverTable::step(Entry& entry, E event, TimePoint now, Outputs& outputs) {
  Actions actions;
  const EcReceiverState before = entry.receiver.state();
  entry.receiver.on(event, now, actions);
  if (entry.receiver.state() != before) count(entry, before, event, now);
  settle(entry, actions, outputs);
}

// A transition to another state.
void EcReceiverTable::count(Entry& entry, EcReceiverState before, E event, TimePoint now) {
  using S = EcReceiverState;
  const S state = entry.receiver.state();
  if (event == E::kTime) ++stats_.num_expired;
  if (state == S::kInjected) {
    entry.injected = now;
    if (event == E::kHit) {
      ++stats_.num_hits;
    } else {
      stats_.num_bytes += static_cast<int64_t>(ec_payload_bytes(entry.receiver.meta()));
    }
    return stats_.end(event == E::kHit ? EcOutcome::kHit : EcOutcome::kInjected);
  }
  if (state == S::kClaimed) return stats_.observe(EcPhase::kClaim, now - entry.injected);
  const bool was_on_its_way =
      before == S::kWaiting || before == S::kReserved || before == S::kReceiving || before == S::kReopening;
  if (!was_on_its_way || (state != S::kClosing && state != S::kExpired)) return;
  switch (event) {
    case E::kNever: return stats_.end(EcOutcome::kNever);
    case E::kMismatch: return stats_.end(EcOutcome::kIncompatible);
    case E::kTime: return stats_.end(EcOutcome::kExpired);
    default: return stats_.end(EcOutcome::kCancelled);
  }
}

EcStats EcReceiverTable::stats() const {
  EcStats stats = stats_;
  stats.num_waiting_alloc = static_cast<int64_t>(num_waiting());
  stats.num_transfers = static_cast<int64_t>(num_transfers());
  stats.num_slots = cache_.max_slots();
  stats.num_reserved_slots = cache_.num_unwritten_slots();
  stats.num_used_slots = cache_.num_used_slots() - stats.num_reserved_slots;
  return stats;
}

// Does what a transition says, then brings lists and timers in line with the state. May forget old tombstones.
void EcReceiverTable::settle(Entry& entry, const Actions& actions, Outputs& outputs) {
  for (const A action : actions) perform(entry, action, outputs);
  // Before the shares: a peer without transfers is forgotten.
  if (entry.receiver.is_over()) {
    move_to(entry, Entry::List::kTombstones);
  } else {
    move_to(entry, entry.receiver.has_room() ? Entry::List::kNone : Entry::List::kWaiting);
  }
  settle_shares(entry);
  timers_.move(input_of(entry.receiver.key()), entry.timer, entry.receiver.next_time());
  if (tombstones_.size() > options_.max_tombstones) forget(EcInput(tombstones_.front()));
}

void EcReceiverTable::perform(Entry& entry, A action, Outputs& outputs) {
  const EcReceiver& receiver = entry.receiver;
  const auto say = [&](Kind kind, EcVerdict verdict) {
    outputs.push_back(message(kind, receiver.from(), receiver.key(), verdict));
  };
  switch (action) {
    case A::kSendAllocated:
      say(Kind::kAllocation, EcVerdict::kAllocated);
      outputs.back().reservation = entry.reservation;
      outputs.back().bulk_address = options_.bulk_address;
      return;
    case A::kSendHit: return say(Kind::kAllocation, EcVerdict::kHit);
    case A::kSendWait: return say(Kind::kAllocation, EcVerdict::kWait);
    case A::kSendNever: return say(Kind::kAllocation, EcVerdict::kNever);
    case A::kSendGone: return say(Kind::kAllocation, EcVerdict::kGone);
    case A::kSendInjected: return say(Kind::kInjection, EcVerdict::kAllocated);
    case A::kSendNotInjected: return say(Kind::kInjection, EcVerdict::kGone);
    case A::kSendMismatch: return say(Kind::kInjection, EcVerdict::kIncompatible);
    case A::kSendCancel: return say(Kind::kCancel, EcVerdict::kGone);
    case A::kTellReady: return say(Kind::kReady, EcVerdict::kAllocated);
    case A::kOpenSink:
      // 0 is no reservation, and a number that is open is somebody else's secret.
      do {
        entry.reservation = draw_();
      } while (entry.reservation == 0 || sinks_.contains(entry.reservation));
      sinks_.emplace(entry.reservation, input_of(receiver.key()));
      say(Kind::kOpenSink, EcVerdict::kAllocated);
      outputs.back().reservation = entry.reservation;
      outputs.back().num_bytes = ec_payload_bytes(receiver.meta());
      return;
    case A::kCloseSink:
      say(Kind::kCloseSink, EcVerdict::kGone);
      outputs.back().reservation = entry.reservation;
      return;
    case A::kRelease: return cache_.free_encoder_input(input_of(receiver.key()));
  }
}

void EcReceiverTable::move_to(Entry& entry, Entry::List list) {
  if (entry.list == list) return;
  if (entry.list == Entry::List::kWaiting) {
    peers_.at(entry.peer).waiting.erase(entry.place);
    --num_waiting_;
  }
  if (entry.list == Entry::List::kTombstones) tombstones_.erase(entry.place);
  entry.list = list;
  if (list == Entry::List::kNone) return;
  const bool waits = list == Entry::List::kWaiting;
  num_waiting_ += waits ? 1 : 0;
  std::list<EcInput>& target = waits ? peers_.at(entry.peer).waiting : tombstones_;
  entry.place = target.insert(target.end(), input_of(entry.receiver.key()));
}

// Of the peer that the entry counts for. Those that were cancelled before they came count for none.
void EcReceiverTable::settle_shares(Entry& entry) {
  if (entry.peer.empty()) return;
  using S = EcReceiverState;
  const S state = entry.receiver.state();
  if (state == S::kInjected || state == S::kClaimed || entry.receiver.is_over()) {
    if (entry.num_slots > 0) peers_.at(entry.peer).num_slots -= std::exchange(entry.num_slots, 0);
  }
  const bool is_open = !entry.receiver.is_over();
  if (std::exchange(entry.is_open, is_open) == is_open) return;
  if (is_open) {
    ++peers_[entry.peer].num_transfers;
  } else if (const auto peer = peers_.find(entry.peer); --peer->second.num_transfers == 0) {
    peers_.erase(peer);
  }
}

// REQUIRES: it is over.
void EcReceiverTable::forget(const EcInput& input) {
  Entry& entry = entries_.at(input);
  move_to(entry, Entry::List::kNone);
  timers_.move(input, entry.timer, TimePoint::max());
  entries_.erase(input);
}

// ---- Invariants

Status EcReceiverTable::check_invariants() const {
  size_t num_listed = 0, num_timed = 0, num_sinks = 0;
  std::map<std::string, Peer> peers;
  uint64_t last_arrival = 0;
  for (const auto& [input, entry] : entries_) {
    const EcReceiver& receiver = entry.receiver;
    const auto broken = [&, where = &input](std::string_view what) {
      return absl::InternalError(str_cat("input ", where->input_id, " of ", where->request_id, ": ", what));
    };
    if (input != input_of(receiver.key())) return broken("has another key");
    const bool waits = receiver.state() == EcReceiverState::kWaiting;
    const Entry::List list = waits                ? Entry::List::kWaiting
                             : receiver.is_over() ? Entry::List::kTombstones
                                                  : Entry::List::kNone;
    if (entry.list != list) return broken("is in a wrong list");
    if (list != Entry::List::kNone && *entry.place != input) return broken("has a wrong place");
    num_listed += list != Entry::List::kNone ? 1 : 0;
    if (entry.is_open == receiver.is_over() && !entry.peer.empty()) return broken("is counted wrongly");
    if (entry.is_open) ++peers[entry.peer].num_transfers;
    if (entry.num_slots > 0) peers[entry.peer].num_slots += entry.num_slots;
    if (entry.timer != receiver.next_time()) return broken("has a wrong timer");
    num_timed += entry.timer != TimePoint::max() ? 1 : 0;
    if (entry.timer != TimePoint::max() && !timers_.has(input, entry.timer)) return broken("has lost its timer");
    const EcReceiverState state = receiver.state();
    const bool has_sink = state == EcReceiverState::kReserved || state == EcReceiverState::kReceiving ||
                          state == EcReceiverState::kClosing || state == EcReceiverState::kReopening;
    if (has_sink != (entry.reservation != 0)) return broken("has a wrong sink");
    num_sinks += has_sink ? 1 : 0;
    if (has_sink && !sinks_.contains(entry.reservation)) return broken("has lost its sink");
    if (receiver.has_room() && !cache_.has_use(input)) return broken("has lost its room");
    const bool is_here = state == EcReceiverState::kInjected || state == EcReceiverState::kClaimed;
    if (receiver.has_room() && cache_.is_written(input) != is_here) return broken("is not what its room is");
    if (entry.num_slots > 0 && (!receiver.has_room() || is_here)) return broken("counts for room that it has not");
  }
  for (const auto& [name, peer] : peers_) {
    last_arrival = 0;
    for (const EcInput& input : peer.waiting) {
      const auto entry = entries_.find(input);
      if (entry == entries_.end() || entry->second.peer != name || entry->second.arrival <= last_arrival) {
        return absl::InternalError("a peer's list has what is not here, or in another order");
      }
      last_arrival = entry->second.arrival;
      peers[name].waiting.push_back(input);
    }
  }
  if (num_listed != num_waiting_ + tombstones_.size()) return absl::InternalError("a list has what is not here");
  if (peers != peers_) return absl::InternalError("a peer has another share");
  if (num_timed != timers_.size()) return absl::InternalError("a timer of nobody");
  if (num_sinks != sinks_.size()) return absl::InternalError("a sink of nobody");
  return ok_status();
}

}  // namespace transept
