// What a session of /v1/realtime sends: the calls of live transcription and the answers to client events become events
// of a dialect, one after the other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "net/websocket.h"
#include "server/metrics.h"
#include "server/realtime_counts.h"
#include "server/realtime_dialect.h"

namespace transept {

// Thread-safe; ownership is shared. No function waits, or calls the session.
class RealtimeOutput final : public LiveObserver {
 public:
  // With more bytes unsent than this, deltas wait and are joined.
  static constexpr size_t kSlowReaderBytes = size_t{32} << 10;

  // Borrows the counts, the metrics and the clock.
  RealtimeOutput(const RealtimeDialect& dialect, RealtimeIds ids, RealtimeCounts& counts, ServerMetrics& metrics,
                 const Clock& clock)
      : dialect_(&dialect), ids_(std::move(ids)), counts_(counts), metrics_(metrics), clock_(clock) {}

  // The first event. `session` gets its id here.
  void open(std::shared_ptr<WebSocket> socket, RealtimeView session);
  void set_dialect(const RealtimeDialect& dialect);
  void updated(const RealtimeConfig& config);
  void error(const RealtimeError& error, const std::string& event_id);

  // The client has committed an item, or that failed.
  void expect_transcript() { add_owed(1); }
  void expect_no_transcript() { add_owed(-1); }
  // An empty transcript for a commit of nothing, if no other is owed: a client that ended twice waits for one.
  void completed_empty();

  // Audio has come; `has_turns`: its turns are detected. In silence it is read a little later, and costs less.
  void on_audio(bool has_turns);
  // Reads nothing further until on_audio_taken.
  void pause();
  // Reads nothing further while messages are being taken elsewhere.
  void set_busy(bool is_busy);
  // Sends deltas that wait, if the client has caught up.
  void flush();
  void close(uint16_t code, std::string_view why);
  // The same on on_finished, or at once if that was.
  void close_when_finished(uint16_t code, std::string_view why);

  void on_speech_started(int64_t item, int64_t audio_start_ms) override;
  void on_speech_stopped(int64_t item, int64_t audio_end_ms) override;
  void on_committed(int64_t item) override;
  void on_cleared() override;
  void on_delta(int64_t item, std::string_view text) override;
  void on_hypothesis(int64_t item, std::string_view open) override;
  void on_completed(int64_t item, const LiveTranscript& transcript) override;
  void on_failed(int64_t item, const Status& error) override;
  void on_audio_taken() override;
  void on_finished() override;

 private:
  struct Item {
    std::string waiting;  // deltas
    TimePoint committed_at{};
  };
  struct Closing {
    uint16_t code = 0;
    std::string why;
  };

  void add_owed(int count);
  void set_patient(bool is_patient) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void set_reading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool is_slow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void send_waiting(int64_t item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_item(int64_t item, RealtimeCounts::End end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void count(int64_t item, const LiveTranscript& transcript) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Write>
  void send(RealtimeCounts::Out kind, const Write& write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  const RealtimeDialect* dialect_ ABSL_GUARDED_BY(mutex_);
  RealtimeIds ids_ ABSL_GUARDED_BY(mutex_);
  RealtimeCounts& counts_;
  ServerMetrics& metrics_;
  const Clock& clock_;
  std::shared_ptr<WebSocket> socket_ ABSL_GUARDED_BY(mutex_);
  RealtimeView view_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Item> items_ ABSL_GUARDED_BY(mutex_);  // spoken or committed, and not ended
  std::string last_committed_ ABSL_GUARDED_BY(mutex_);
  int num_owed_ ABSL_GUARDED_BY(mutex_) = 0;  // transcripts of the client's commits
  std::optional<TimePoint> paused_since_ ABSL_GUARDED_BY(mutex_);
  bool is_busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_patient_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Closing> closing_ ABSL_GUARDED_BY(mutex_);
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace transept
