// All outputs that an encode instance sends: finds the transfer that a message is about, keeps the times, and forgets a
// transfer when its caller has its answer. The encode instance's side of the handshake.
//
// Owned by the engine. Not thread-safe (engine thread); the connector's threads only put into queues what comes, and do
// what EcSenderOutput says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "encoder_cache/ec_sender.h"
#include "encoder_cache/ec_timers.h"

namespace transept {

// What is to be done, in order. `meta` has the key, and is whole where metadata is sent.
struct EcSenderOutput {
  EcSenderAction action = EcSenderAction::kAnswer;
  InstanceId to;
  EcMeta meta;
  uint64_t reservation = 0;  // kSendCache
  std::string bulk_address;  // kSendCache
  Status status;             // kAnswer
};

class EcSenderTable final {
 public:
  struct Options {
    EcTimes times;
    size_t max_transfers = 1024;
    uint64_t seed = 0;  // of the jitter; differs between instances
  };
  using Outputs = std::vector<EcSenderOutput>;

  explicit EcSenderTable(const Options& options);

  // Announces an output. Exactly one kAnswer about it follows. Errors: kAlreadyExists, this input is in flight;
  // kResourceExhausted, too many are. REQUIRES: check_ec_meta(meta).
  Status add(const InstanceId& to, EcMeta meta, TimePoint now, Outputs& outputs);
  // Its encode has ended: the rows are there to be sent.
  void on_encoded(const EcInput& input, TimePoint now, Outputs& outputs);
  void abort(const EcInput& input, TimePoint now, Outputs& outputs);  // no-op if it is not in flight

  // What peers say. Answers of an instance that was not asked do nothing; one that was restarted under its name may
  // answer for the old one.
  void on_allocation(const InstanceId& from, const EcAllocation& allocation, TimePoint now, Outputs& outputs);
  void on_injection(const InstanceId& from, const EcInjection& injection, TimePoint now, Outputs& outputs);
  void on_cancel(const InstanceId& from, const EcKey& key, TimePoint now, Outputs& outputs);

  // What the transport says: kSendProgress, kSendDone and kSendFailed of an attempt, kOutboxFull of a message.
  void on_transport(EcSenderEvent event, const EcKey& key, TimePoint now, Outputs& outputs);
  void on_path(bool is_away, TimePoint now);
  void on_peer_gone(const InstanceId& peer, TimePoint now, Outputs& outputs);

  void on_time(TimePoint now, Outputs& outputs);
  TimePoint next_time() const { return timers_.next_time(); }  // when to call it at the latest; TimePoint::max(): never

  bool has(const EcInput& input) const { return entries_.contains(input); }
  size_t num_transfers() const { return entries_.size(); }
  // Without phases, hits and slots of the encodes, which the engine knows.
  const EcStats& stats() const { return stats_; }

 private:
  struct Entry {
    InstanceId to;
    EcSender sender;
    TimePoint timer = TimePoint::max();
    EcSenderState seen = EcSenderState::kQueued;  // as it was counted last
    TimePoint since{};                            // when that began
  };
  using Actions = std::vector<EcSenderAction>;

  Entry* find_asked(const InstanceId& from, const EcKey& key);
  void step(Entry& entry, EcSenderEvent event, TimePoint now, Outputs& outputs);
  void count(Entry& entry, const Actions& actions, TimePoint now);
  void settle(Entry& entry, const Actions& actions, TimePoint now, Outputs& outputs);

  Options options_;
  bool is_path_away_ = false;
  uint64_t num_added_ = 0;
  std::map<EcInput, Entry> entries_;  // a request's stand together; entries do not move
  EcTimers timers_;
  EcStats stats_;
};

}  // namespace transept
