// What all sessions of /v1/realtime share: their number, their counts, and the thread that looks after them.
// Thread-safe. Outlives its sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/metrics.h"
#include "server/realtime_counts.h"
#include "server/realtime_session.h"

namespace transept {

class RealtimeHub final {
 public:
  struct Options {
    int32_t max_sessions = 64;
    double session_seconds = 86400;  // so long after its begin a session ends
    double max_item_seconds = 1800;
  };
  static constexpr auto kBetweenLooks = std::chrono::milliseconds(100);

  // What is looked after while it is open.
  class Session {
   public:
    virtual ~Session() = default;
    // Called every kBetweenLooks.
    virtual void look() = 0;
  };

  // One of max_sessions. Movable; the destructor releases it.
  class Place final {
   public:
    Place() = default;
    Place(Place&& other) noexcept : hub_(std::exchange(other.hub_, nullptr)) {}
    Place& operator=(Place&& other) noexcept;
    ~Place() { release(); }

   private:
    friend class RealtimeHub;
    explicit Place(RealtimeHub* hub) : hub_(hub) {}
    void release();
    RealtimeHub* hub_ = nullptr;
  };

  // Borrows the metrics and the clock.
  RealtimeHub(std::unique_ptr<RealtimeSpeech> speech, const Options& options, ServerMetrics& metrics,
              const Clock& clock);
  // REQUIRES: no session lives.
  ~RealtimeHub();
  RealtimeHub(const RealtimeHub&) = delete;
  RealtimeHub& operator=(const RealtimeHub&) = delete;

  // Errors: kUnavailable if all places are taken.
  StatusOr<Place> take_place();

  void add(std::shared_ptr<Session> session);
  // look() is not called after the next kBetweenLooks.
  void remove(const Session* session);

  RealtimeSpeech& speech() { return *speech_; }
  RealtimeCounts& counts() { return counts_; }
  ServerMetrics& metrics() { return metrics_; }
  const Options& options() const { return options_; }
  const Clock& clock() const { return clock_; }

 private:
  void run();

  const std::unique_ptr<RealtimeSpeech> speech_;
  const Options options_;
  ServerMetrics& metrics_;
  const Clock& clock_;
  RealtimeCounts counts_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace transept
