// For tests of live sessions: an observer that keeps what it is told, sound at any rate, and what a file would give.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "media/media_testing.h"
#include "speech/characters.h"
#include "speech/live_session.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {

struct LiveEvent {
  std::string kind;
  int64_t item = -1;
  int64_t ms = -1;
  std::string text = {};
  LiveTranscript transcript = {};
  Status status = {};
};

// Thread-safe. Checks the order of each item's events.
class LiveLog final : public LiveObserver {
 public:
  void on_speech_started(int64_t item, int64_t ms) override { add({.kind = "started", .item = item, .ms = ms}); }
  void on_speech_stopped(int64_t item, int64_t ms) override { add({.kind = "stopped", .item = item, .ms = ms}); }
  void on_committed(int64_t item) override { add({.kind = "committed", .item = item}); }
  void on_cleared() override { add({.kind = "cleared"}); }
  void on_delta(int64_t item, std::string_view text) override {
    EXPECT_FALSE(text.empty());
    add({.kind = "delta", .item = item, .text = std::string(text)});
  }
  void on_hypothesis(int64_t item, std::string_view open) override {
    add({.kind = "hypothesis", .item = item, .text = std::string(open)});
  }
  void on_completed(int64_t item, const LiveTranscript& transcript) override {
    add({.kind = "completed", .item = item, .text = transcript.text, .transcript = transcript});
  }
  void on_failed(int64_t item, const Status& error) override { add({.kind = "failed", .item = item, .status = error}); }
  void on_audio_taken() override { add({.kind = "taken"}); }
  void on_finished() override { add({.kind = "finished"}); }

  // Called for each event, after it is kept and without a lock.
  void on_event(std::function<void(const LiveEvent&)> call) { call_ = std::move(call); }

  std::vector<LiveEvent> events() const {
    const MutexLock lock(mutex_);
    return events_;
  }
  // The kinds, each with its item: "started 0". Hypotheses and deltas before a commit are left out.
  std::vector<std::string> outline() const {
    std::vector<std::string> lines;
    std::vector<int64_t> committed;
    for (const LiveEvent& event : events()) {
      if (event.kind == "committed") committed.push_back(event.item);
      if (event.kind == "hypothesis" || event.kind == "delta") continue;
      lines.push_back(event.item < 0 ? event.kind : str_cat(event.kind, " ", event.item));
    }
    return lines;
  }
  std::string joined_deltas(int64_t item) const {
    std::string joined;
    for (const LiveEvent& event : events()) {
      if (event.kind == "delta" && event.item == item) joined += event.text;
    }
    return joined;
  }
  std::vector<LiveEvent> of(std::string_view kind) const {
    std::vector<LiveEvent> found;
    for (LiveEvent& event : events()) {
      if (event.kind == kind) found.push_back(std::move(event));
    }
    return found;
  }
  // Waits for so many of a kind. False: a minute was not enough.
  bool wait_for(std::string_view kind, size_t count = 1) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const MutexLock lock(mutex_);
    while (static_cast<size_t>(std::ranges::count(events_, kind, &LiveEvent::kind)) < count) {
      if (!changed_.wait_until(mutex_, end)) return false;
    }
    return true;
  }

 private:
  void add(const LiveEvent& event) {
    const std::function<void(const LiveEvent&)> call = call_;
    {
      const MutexLock lock(mutex_);
      check(event);
      events_.push_back(event);
      changed_.notify_all();
    }
    if (call) call(event);
  }

  // What must hold of any order.
  void check(const LiveEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::vector<LiveEvent> events = events_;  // few
    const auto has = [&](std::string_view kind, int64_t item) {
      return std::ranges::any_of(events,
                                 [&](const LiveEvent& other) { return other.kind == kind && other.item == item; });
    };
    EXPECT_FALSE(std::ranges::any_of(events_, [](const LiveEvent& other) { return other.kind == "finished"; }));
    if (event.item < 0) return;
    EXPECT_FALSE(has("completed", event.item) || has("failed", event.item)) << event.kind << " after the end";
    if (event.kind == "hypothesis" || event.kind == "stopped" || event.kind == "committed") {
      EXPECT_FALSE(has("committed", event.item)) << event.kind;
    }
    if (event.kind == "started") {
      EXPECT_FALSE(has("delta", event.item) || has("started", event.item));
    }
    if (event.kind != "completed" && event.kind != "failed") return;
    EXPECT_TRUE(has("committed", event.item));
    // In the order of the commits.
    for (const LiveEvent& other : events_) {
      if (other.kind != "committed") continue;
      if (other.item == event.item) break;
      EXPECT_TRUE(has("completed", other.item) || has("failed", other.item)) << other.item << " before " << event.item;
    }
  }

  std::function<void(const LiveEvent&)> call_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<LiveEvent> events_ ABSL_GUARDED_BY(mutex_);
};

// synthetic_audio at another rate: every sample repeated or left out, which is sound enough.
inline std::vector<int16_t> synthetic_audio_at(int32_t rate, uint32_t seed, double seconds,
                                               const std::vector<std::pair<double, double>>& silence = {}) {
  const std::vector<int16_t> sound = synthetic_audio(seed, static_cast<size_t>(seconds * 16000) + 1);
  std::vector<int16_t> out(static_cast<size_t>(seconds * rate));
  for (size_t i = 0; i < out.size(); ++i) out[i] = sound[i * 16000 / static_cast<size_t>(rate)];
  for (const auto& [begin, end] : silence) {
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(begin * rate),
              out.begin() + static_cast<std::ptrdiff_t>(end * rate), int16_t{0});
  }
  return out;
}

// Sound without a pause.
inline std::vector<int16_t> chatter(double seconds) {
  std::vector<int16_t> samples = synthetic_audio(2, static_cast<size_t>(seconds * 16000));
  std::mt19937 random(4);
  for (size_t i = 0; i < samples.size(); ++i) {
    const int loud = i / 1600 % 3 == 0 ? 300 : 4000;  // syllables
    samples[i] =
        static_cast<int16_t>(samples[i] / 2 + static_cast<int>(random() % static_cast<unsigned>(loud)) - loud / 2);
  }
  return samples;
}

// These samples as a file.
inline AudioSource wav_source(std::span<const int16_t> samples, int32_t rate) {
  std::string data;
  for (const int16_t sample : samples) data += little(static_cast<uint16_t>(sample), 2);
  return AudioSource(AudioBytes::from_string(make_wav({.rate = static_cast<uint32_t>(rate)}, data)));
}

// As POST /v1/audio/transcriptions has them without fields (server/transcription_ask.cc).
inline TranscribeOptions served_options() {
  TranscribeOptions options;
  options.skip_silence = true;
  options.beam_size = 1;
  return options;
}

inline std::string offline_text(const House& house, std::span<const int16_t> samples, int32_t rate,
                                const TranscribeOptions& options = served_options()) {
  const auto result = house.transcribe(wav_source(samples, rate), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? std::string(strip_space(result->transcript.text)) : "";
}

enum class Cutting : uint8_t { kWhole, kFrames, kOdd };

// Appends all samples, in events of 20 ms, of odd sizes, or one.
inline void append_cut(LiveSession& session, std::span<const int16_t> samples, int32_t rate, Cutting cutting) {
  std::mt19937 random(3);
  while (!samples.empty()) {
    const size_t size = cutting == Cutting::kWhole    ? samples.size()
                        : cutting == Cutting::kFrames ? static_cast<size_t>(rate / 50)
                                                      : 1 + random() % 7919;
    const auto part = samples.first(std::min(size, samples.size()));
    const Status status = session.append_pcm16(part);
    ASSERT_TRUE(status.ok()) << status;
    samples = samples.subspan(part.size());
  }
}

}  // namespace transept::testing
