// For tests of /v1/realtime: a session that keeps what it is asked for and says what the test wants, and a socket that
// keeps what is sent.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/json.h"
#include "base/mutex.h"
#include "net/websocket.h"
#include "server/realtime_session.h"
#include "speech/speech_testing.h"

namespace transept::testing {

// What a FakeSession is asked for; the test changes what it answers.
struct FakeSpeaker {
  LiveOptions options;
  std::vector<int16_t> samples;  // since the last commit or clear
  int num_commits = 0, num_clears = 0, num_updates = 0;
  bool is_finished = false, is_alive = true;
  double waiting_seconds = 0;
  Status append_error, update_error;
  std::shared_ptr<LiveObserver> observer;
};

class FakeSession final : public RealtimeSession {
 public:
  explicit FakeSession(std::shared_ptr<FakeSpeaker> speaker) : speaker_(std::move(speaker)) {}
  ~FakeSession() override {
    speaker_->is_alive = false;
    speaker_->observer.reset();
  }

  Status append(std::span<const int16_t> samples) override {
    RETURN_IF_ERROR(speaker_->append_error);
    speaker_->samples.insert(speaker_->samples.end(), samples.begin(), samples.end());
    return ok_status();
  }
  Status commit() override {
    const size_t least = static_cast<size_t>(speaker_->options.sampling_rate) / 10;
    if (speaker_->samples.size() < least) {
      return absl::FailedPreconditionError(str_cat(speaker_->samples.size(), " samples, and the least is ", least));
    }
    speaker_->samples.clear();
    ++speaker_->num_commits;
    return ok_status();
  }
  void clear() override {
    speaker_->samples.clear();
    ++speaker_->num_clears;
    speaker_->observer->on_cleared();
  }
  Status update(const LiveOptions& options) override {
    RETURN_IF_ERROR(speaker_->update_error);
    speaker_->options = options;
    ++speaker_->num_updates;
    return ok_status();
  }
  void finish() override { speaker_->is_finished = true; }
  double num_waiting_seconds() const override { return speaker_->waiting_seconds; }

 private:
  const std::shared_ptr<FakeSpeaker> speaker_;
};

// Knows no language "xx".
class FakeSpeech final : public RealtimeSpeech {
 public:
  Status check(const LiveOptions& options) const override {
    if (options.language == "xx") return field_error("language", "language \"xx\" is unknown");
    return ok_status();
  }
  StatusOr<std::unique_ptr<RealtimeSession>> create(const LiveOptions& options,
                                                    std::shared_ptr<LiveObserver> observer) override {
    RETURN_IF_ERROR(create_error);
    last = std::make_shared<FakeSpeaker>();
    last->options = options;
    last->observer = std::move(observer);
    return std::make_unique<FakeSession>(last);
  }

  LiveCounts counts() const override { return live_counts; }

  Status create_error;
  LiveCounts live_counts;
  std::shared_ptr<FakeSpeaker> last;
};

// Thread-safe.
class FakeSocket final : public WebSocket {
 public:
  void send(std::string message, bool is_text) override {
    const MutexLock lock(mutex_);
    EXPECT_TRUE(is_text);
    if (code_ != 0) return;
    events_.push_back(parse_json(message));
  }
  void close(uint16_t code, std::string_view why) override {
    const MutexLock lock(mutex_);
    if (code_ == 0) code_ = code, why_ = why;
  }
  void pause_reading() override { set_paused(true); }
  void resume_reading() override { set_paused(false); }
  void set_patient(bool is_patient) override {
    const MutexLock lock(mutex_);
    is_patient_ = is_patient;
  }
  size_t num_unsent_bytes() const override {
    const MutexLock lock(mutex_);
    return unsent_;
  }
  bool is_gone() const override { return false; }

  // The events since the last call.
  std::vector<Json> take() {
    const MutexLock lock(mutex_);
    return std::exchange(events_, {});
  }
  uint16_t code() const {
    const MutexLock lock(mutex_);
    return code_;
  }
  std::string why() const {
    const MutexLock lock(mutex_);
    return why_;
  }
  bool is_paused() const {
    const MutexLock lock(mutex_);
    return is_paused_;
  }
  bool is_patient() const {
    const MutexLock lock(mutex_);
    return is_patient_;
  }
  void set_unsent(size_t bytes) {
    const MutexLock lock(mutex_);
    unsent_ = bytes;
  }

 private:
  void set_paused(bool is_paused) {
    const MutexLock lock(mutex_);
    is_paused_ = is_paused;
  }

  mutable Mutex mutex_;
  std::vector<Json> events_ ABSL_GUARDED_BY(mutex_);
  uint16_t code_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string why_ ABSL_GUARDED_BY(mutex_);
  bool is_paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_patient_ ABSL_GUARDED_BY(mutex_) = false;
  size_t unsent_ ABSL_GUARDED_BY(mutex_) = 0;
};

inline std::string append_event(std::string_view bytes) {
  return str_cat(R"({"type": "input_audio_buffer.append", "audio": ")", encode_base64(bytes), "\"}");
}

inline std::string bytes_of_samples(const std::vector<int16_t>& samples) {
  std::string bytes;
  for (const int16_t sample : samples) {
    bytes.push_back(static_cast<char>(sample & 0xFF));
    bytes.push_back(static_cast<char>(sample >> 8 & 0xFF));
  }
  return bytes;
}

}  // namespace transept::testing
