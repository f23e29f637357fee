// All communication between other threads and the engine thread: new requests and aborts in, the engine's state out.
// One mutex guards it, held no longer than it takes to swap a list. The engine thread sleeps here when it has nothing
// to do.
//
// One per engine. Owned jointly by its EngineThread and by every stream, so a stream may outlive the engine.
// Thread-safe.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "async/choose_replica.h"
#include "async/engine_snapshot.h"
#include "async/request_channel.h"
#include "base/clock.h"
#include "base/content_digest.h"
#include "base/mutex.h"
#include "base/recent_set.h"
#include "base/status.h"
#include "core/prompt.h"
#include "core/sampling_params.h"
#include "engine/step_engine.h"

namespace transept {

// Error texts.
Status id_is_taken(const std::string& request_id);
std::string seconds_text(Duration duration);  // "1.5 s"

class EngineMailbox final {
 public:
  explicit EngineMailbox(int32_t max_queued) : max_queued_(max_queued) {}

  struct NewRequest {
    std::shared_ptr<RequestChannel> channel;
    EncodedInput encoded;  // if it has a value, it replaces the encoder side of `inputs`
    EncoderDecoderInputs inputs;
    SamplingParams params;
    RequestOptions options;
    TimePoint arrival{};
    std::optional<TimePoint> deadline;
    bool is_continuation = false;  // not refused by a full queue
    RequestLoad load;
  };

  // An input that waits to become a handle.
  struct EncodeCall {
    EncoderDecoderInputs inputs;
    std::promise<StatusOr<EncodedInput>> handle;
  };

  // ---- Any thread
  // Errors: kInvalidArgument (`id`: in flight already), kResourceExhausted (the queue is full, with both numbers),
  // kUnavailable (no new work), or the error that made the engine fail. `num_queued_elsewhere` requests wait in other
  // replicas and count as if they waited here.
  Status add(NewRequest request, int32_t num_queued_elsewhere = 0);
  bool has(const std::string& request_id) const;
  // Returns what is in flight, and whether a request in flight reads `content` or one of the last kMaxRecent did.
  ReplicaLoad load(const std::optional<ContentDigest>& content) const;
  bool abort(const std::string& request_id);                   // false: no request of that id is in flight
  void abort(const std::shared_ptr<RequestChannel>& channel);  // no-op if it has ended

  // Errors: kUnavailable (no new work), or the error that made the engine fail. They are set in `call.handle` at once.
  void encode(EncodeCall call);
  // Asks the engine to give up what it keeps for later requests; gets the number of KV blocks that are free by it. 0 at
  // once if no new work is taken.
  std::future<int64_t> clear_cache();
  // Tells the engine that the last copy of a handle was dropped.
  void input_dropped();
  // Ends take()'s sleep: an event of another instance has come.
  void wake();

  void refuse_new_requests();
  // Waits until every request has ended and every stream was notified. Returns false after `timeout`.
  bool wait_until_idle(Duration timeout);
  void stop();
  // Makes add() return this error from here on, and ends with it the streams in flight and the encodes that the engine
  // thread has not taken, without waiting for its current step.
  void give_up(const Status& error);

  int32_t num_queued() const;
  int32_t num_in_flight() const;
  Status failure() const;
  EngineSnapshot snapshot() const;

  // ---- Engine thread
  struct Work {
    std::vector<NewRequest> added;
    std::vector<std::shared_ptr<RequestChannel>> aborted;
    std::vector<EncodeCall> encodes;
    std::vector<std::promise<int64_t>> cache_clearings;
    bool inputs_dropped = false;
    bool stop = false;
  };
  // Takes what has come. Waits until there is something, at most `max_sleep`; unset: as long as it takes.
  void take(std::optional<Duration> max_sleep, Work& work);
  // Frees the ids of requests that have ended. Call before their streams are notified, so that a reader of the end may
  // reuse the id at once.
  void forget(const std::vector<std::string>& request_ids);
  // Makes add() return this error from here on.
  void fail(const Status& error);
  // Publishes the state after a step and gives `next` the memory of the previous one. next.num_queued: the requests
  // that wait inside the engine.
  void publish(EngineSnapshot& next);

 private:
  void close_locked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool is_at_rest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return (is_idle_ || stop_) && in_flight_.empty(); }
  bool has_work() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int32_t num_queued_locked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return published_.num_queued + num_taken_ + static_cast<int32_t>(added_.size());
  }

  struct InFlight {
    std::shared_ptr<RequestChannel> channel;
    RequestLoad load;
  };
  static constexpr size_t kMaxRecent = 4096;

  const int32_t max_queued_;
  mutable Mutex mutex_;
  CondVar wake_engine_, became_idle_;
  std::vector<NewRequest> added_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<RequestChannel>> aborted_ ABSL_GUARDED_BY(mutex_);
  std::vector<EncodeCall> encodes_ ABSL_GUARDED_BY(mutex_);
  bool inputs_dropped_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_woken_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, InFlight> in_flight_ ABSL_GUARDED_BY(mutex_);
  int64_t num_tokens_ ABSL_GUARDED_BY(mutex_) = 0;                                // of all requests in flight
  absl::flat_hash_map<ContentDigest, int32_t> contents_ ABSL_GUARDED_BY(mutex_);  // requests in flight that read it
  RecentSet<ContentDigest> recent_ ABSL_GUARDED_BY(mutex_){kMaxRecent};           // contents that requests brought
  std::vector<std::promise<int64_t>> cache_clearings_ ABSL_GUARDED_BY(mutex_);
  EngineSnapshot published_ ABSL_GUARDED_BY(mutex_);
  int32_t num_taken_ ABSL_GUARDED_BY(mutex_) = 0;  // by the engine since its last publish()
  int64_t num_refused_ ABSL_GUARDED_BY(mutex_) = 0;
  Status closed_ ABSL_GUARDED_BY(mutex_);   // why no new work is taken; ok: it is taken
  Status failure_ ABSL_GUARDED_BY(mutex_);  // the engine's
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_idle_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace transept
