// All inputs that a decode instance receives: who waits for room, who has it, and what is said to whom. The engine's
// side of the handshake: it keeps the rules of EcReceiver over the room of EncoderCacheManager.
//
// Room is given in order of arrival (vLLM's waiting_alloc): the first announcement that does not fit ends the scan, so
// no announcement is overtaken, by small outputs or by hits either. Everything that is kept is bounded: a further
// announcement is answered with kBusy and forgotten, and so are the oldest memories of what is over.
//
// A peer that announces without end leaves half of everything to others (dynamic thresholds: Choudhury and Hahne, 1998,
// with a factor of 1): it may have as many waiting announcements as places are free for all, and, once a second peer is
// known, as many transfers, and as much room of rows that have not come, as are free. A further announcement is
// answered with kBusy; one that would need more room is held back, and others overtake it. A peer without any such room
// is given its first.
//
// A request's uses begin here (announced inputs) or at the manager (outputs that are here already); they all end here.
// Owned by the engine. Not thread-safe (engine thread); the connector's threads only put into queues what comes, and do
// what EcReceiverOutput says.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "encoder_cache/ec_receiver.h"
#include "encoder_cache/ec_stats.h"
#include "encoder_cache/ec_timers.h"
#include "encoder_cache/encoder_cache_manager.h"

namespace transept {

// What is to be done, in order.
struct EcReceiverOutput {
  enum class Kind : uint8_t {
    kAllocation,  // channel 0, to `to`
    kInjection,   // channel 1, to `to`
    kCancel,      // kind Cancel of channel 0, to `to`
    kOpenSink,    // reservation, num_bytes: before the allocation that names it is sent
    kCloseSink,   // reservation: on_sink_closed() must follow, also if the sink has completed
    kReady,       // key: the output is here
  };
  Kind kind = Kind::kReady;
  InstanceId to;
  EcKey key;
  EcVerdict verdict = EcVerdict::kGone;
  uint64_t reservation = 0;
  uint64_t num_bytes = 0;
  std::string bulk_address;
};

class EcReceiverTable final {
 public:
  struct Options {
    ModelFingerprint model;       // announcements of another model, width or dtype are incompatible
    std::vector<int32_t> widths;  // of rows: one of each kind of item
    DType dtype = DType::kFloat32;
    std::string bulk_address;  // where chunks go
    EcTimes times;
    size_t max_waiting = 1024;     // of all peers; > 0
    size_t max_transfers = 4096;   // that are not over
    size_t max_tombstones = 4096;  // that are; > 0
  };
  using Outputs = std::vector<EcReceiverOutput>;

  // Borrows the manager. `draw` gives the secrets of reservations: 64 random bits each.
  EcReceiverTable(EncoderCacheManager& cache, Options options, std::function<uint64_t()> draw);

  // What peers say. `is_asked`: this instance has asked for the input itself, and bounds what it asks for. All such
  // announcements count as one peer of their own, from whatever sender. REQUIRES: check_ec_meta(meta).
  void on_metadata(const InstanceId& from, const EcMeta& meta, TimePoint now, Outputs& outputs, bool is_asked = false);
  void on_query(const InstanceId& from, const EcKey& key, TimePoint now, Outputs& outputs);
  void on_cancel(const InstanceId& from, const EcKey& key, TimePoint now, Outputs& outputs);
  // Gives room to those that wait, in order, to at most `max_given`. Call once a step.
  void allocate_waiting(TimePoint now, int32_t max_given, Outputs& outputs);

  // What the receiving thread says of a sink. Unknown reservations are those of sinks that were closed: no-ops.
  void on_chunk(uint64_t reservation, TimePoint now);
  void on_complete(uint64_t reservation, TimePoint now, Outputs& outputs);
  void on_sink_closed(uint64_t reservation, TimePoint now, Outputs& outputs);

  // A request has come. Returns whether all its inputs are here: then they stay until consume() or abort().
  bool claim(const std::string& request_id, int32_t num_inputs, TimePoint now, Outputs& outputs);
  // The rows of an input were used. Told again: no-op.
  void consume(const EcInput& input, TimePoint now);
  // The request has ended before its inputs were used, whatever their states.
  void abort(const std::string& request_id, TimePoint now, Outputs& outputs);

  // At most `max_inputs` whose time has come; next_time() stays in the past if there are more.
  void on_time(TimePoint now, Outputs& outputs, size_t max_inputs = std::numeric_limits<size_t>::max());
  TimePoint next_time() const { return timers_.next_time(); }  // when to call it at the latest; TimePoint::max(): never

  // What is known of an input; null: nothing. Valid until the next call.
  const EcReceiver* find_receiver(const EcInput& input) const;
  size_t num_waiting() const { return num_waiting_; }
  // Whether it waits because its peer has its share of the room: others may overtake it.
  bool is_held_back(const EcInput& input) const;
  size_t num_transfers() const { return entries_.size() - tombstones_.size(); }
  size_t num_tombstones() const { return tombstones_.size(); }
  size_t num_sinks() const { return sinks_.size(); }

  EcStats stats() const;
  // Outputs that were here when they were wanted: no peer will announce them.
  void count_hits(int64_t count) { stats_.num_hits += count; }

  // Checks that lists, timers and uses agree with the states. Errors: kInternal. For tests.
  Status check_invariants() const;

 private:
  struct Entry {
    EcReceiver receiver;
    uint64_t reservation = 0;              // of its open or closing sink; 0: none
    TimePoint timer = TimePoint::max();    // its place in timers_
    TimePoint injected{};                  // when its last byte came
    std::list<EcInput>::iterator place{};  // in Peer::waiting or tombstones_
    std::string peer;                      // whose shares it counts for: who announced it first
    uint64_t arrival = 0;                  // in order of announcements
    bool is_open = false;                  // a transfer of its peer
    int64_t num_slots = 0;                 // of its room, while its rows have not come
    enum class List : uint8_t { kNone, kWaiting, kTombstones } list = List::kNone;
  };
  struct Peer {
    std::list<EcInput> waiting;  // in order of arrival
    size_t num_transfers = 0;    // > 0
    int64_t num_slots = 0;       // of its entries
    bool operator==(const Peer&) const = default;
  };
  using Actions = std::vector<EcReceiverAction>;

  bool is_compatible(const EcMeta& meta) const;
  bool may_wait(const std::string& peer) const;
  bool is_held_back(const Peer& peer) const;
  Entry* first_to_give();
  void settle_shares(Entry& entry);
  Entry* find(const EcInput& input);
  void refuse(const InstanceId& from, const EcKey& key, EcVerdict verdict, Outputs& outputs);
  void admit(const InstanceId& from, const EcMeta& meta, TimePoint now, Outputs& outputs, bool is_asked);
  bool give_room(Entry& entry, TimePoint now, Outputs& outputs);
  void step(Entry& entry, EcReceiverEvent event, TimePoint now, Outputs& outputs);
  void count(Entry& entry, EcReceiverState before, EcReceiverEvent event, TimePoint now);
  void settle(Entry& entry, const Actions& actions, Outputs& outputs);
  void perform(Entry& entry, EcReceiverAction action, Outputs& outputs);
  void move_to(Entry& entry, Entry::List list);
  void forget(const EcInput& input);

  EncoderCacheManager& cache_;
  Options options_;
  std::function<uint64_t()> draw_;
  std::map<EcInput, Entry> entries_;  // a request's stand together; entries do not move
  absl::flat_hash_map<uint64_t, EcInput> sinks_;
  std::map<std::string, Peer> peers_;  // with transfers; by name, whatever the incarnation
  std::string first_peer_;             // that ever announced anything
  bool has_others_ = false;            // some other peer has, too
  size_t num_waiting_ = 0;
  uint64_t num_announced_ = 0;
  std::list<EcInput> tombstones_;  // in order of their ends
  EcTimers timers_;
  EcStats stats_;
};

}  // namespace transept
