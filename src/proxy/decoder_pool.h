// The decode instances that a proxy forwards to: who is there, who is well, and who is least busy. Time goes in.
//
// An instance is there while the broker has its record, and gets no requests once that says that it drains. One whose
// connection broke, or that has refused several requests, is left out for a while (5 s, doubling to 60 s with each time
// that it fails again), then gets one request as a probe, and another one when that takes longer than the pause was.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "encoder_cache/broker.h"

namespace transept {

class DecoderPool final {
 public:
  struct Options {
    int32_t max_refusals = 3;                        // in a row, until an instance is left out
    Duration first_pause = std::chrono::seconds(5);  // of an instance that breaks; doubles
    Duration max_pause = std::chrono::seconds(60);
    // Of an instance that refuses. It is there, and what it lacks others often lack, too, such as the memory of Redis:
    // when it comes back, all are to go on at once.
    Duration refusal_pause = std::chrono::seconds(1);
    uint64_t seed = 0;  // of the choice
  };
  explicit DecoderPool(const Options& options) : options_(options), random_(options.seed) {}

  // Replaces who is there. What is known of those that stay is kept; another incarnation is well.
  void set_records(std::span<const InstanceRecord> records);

  struct Choice {
    InstanceId id;
    std::string url;
    ModelFingerprint model;
  };
  // Of two random instances the one with fewer requests, by its record or by what was begun here. It counts as begun:
  // end() must follow. nullopt: none is well, but for those of `tried`.
  std::optional<Choice> begin(std::span<const InstanceId> tried, TimePoint now);

  // Its answer to what was begun comes, and is no refusal: it is well, however long the answer takes. end() still
  // follows.
  void begin_answer(const InstanceId& id);

  enum class Outcome : uint8_t {
    kAnswered,
    kRefused,  // 503: it drains, loads or lacks its encoders
    kBroken,   // it cannot be reached, or its connection broke before an answer
    kGivenUp,  // the client has gone: it says nothing of the instance
  };
  // `words`: what it said with kRefused; cut to kMaxWordsBytes, empty: nothing that could be repeated.
  static constexpr size_t kMaxWordsBytes = 1024;
  void end(const InstanceId& id, Outcome outcome, TimePoint now, std::string_view words = {});
  // The last words of instances that are left out because they refuse; empty: there are none.
  std::string last_refusal() const;

  // How many instances there are, by what becomes of requests.
  struct States {
    int64_t num_ready = 0;     // get requests
    int64_t num_left_out = 0;  // for a while
    int64_t num_draining = 0;  // by their records
  };
  States states(TimePoint now) const;
  // Takes room for rows of `num_positions` that are sent before their request (until end_hold()). False: less than half
  // of what was free at best would stay for rows that the instance asks for itself; what held rows wait for can then
  // always come. An instance whose record says nothing of its room has none.
  bool begin_hold(const InstanceId& id, int64_t num_positions);
  void end_hold(const InstanceId& id, int64_t num_positions);
  // Whether the instance is there, and not left out.
  bool is_well(const InstanceId& id, TimePoint now) const;
  // Of all that are there.
  std::set<std::string> urls() const;
  // Instances that would be chosen now.
  size_t num_ready(TimePoint now) const;

 private:
  struct Instance {
    InstanceRecord record;
    int64_t num_begun = 0;
    int64_t num_held = 0;   // positions
    int64_t most_free = 0;  // InstanceLoad::num_free_slots
    int32_t num_refusals = 0;
    std::string refusal;  // its last words; empty: it has not refused with words since it answered or broke
    TimePoint refused_at = TimePoint::min();
    Duration pause{};  // the last one; zero: it is well
    TimePoint out_until = TimePoint::min();
    TimePoint probed_until = TimePoint::min();  // no other probe before
  };

  Instance* find(const InstanceId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool is_ready(const Instance& instance, TimePoint now);
  Duration longer_pause(const Instance& instance) const;
  static void be_well(Instance& instance);
  void leave_out(Instance& instance, TimePoint now, Duration pause) const;

  const Options options_;
  mutable Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Instance> instances_ ABSL_GUARDED_BY(mutex_);  // by name
};

}  // namespace transept
