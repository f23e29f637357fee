#include "load/live_load.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/base64.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "load/load_report.h"
#include "net/websocket_client.h"

namespace transept {
namespace {

constexpr std::chrono::milliseconds kPiece(100), kLook(20);
constexpr size_t kPieceSamples = LiveLoad::kRate / 10;

Json configuration(const LiveLoad& load) {
  Json transcription = Json::object();
  transcription.set("model", load.model);
  transcription.set("delay", load.delay);
  if (!load.language.empty()) transcription.set("language", load.language);
  Json input = Json::object();
  input.set("format", Json(Json::Object{{"type", "audio/pcm"}, {"rate", LiveLoad::kRate}}));
  input.set("transcription", std::move(transcription));
  input.set("turn_detection", Json(Json::Object{{"type", "server_vad"}}));
  Json session = Json::object();
  session.set("type", "transcription");
  session.set("audio", Json(Json::Object{{"input", std::move(input)}}));
  if (load.wants_hypotheses) session.set("include", Json(Json::Array{"transept.hypothesis"}));
  Json event = Json::object();
  event.set("type", "session.update");
  event.set("session", std::move(session));
  return event;
}

// The clips one behind another, each with its pause, from the session's own on.
class Recording final {
 public:
  Recording(const LiveLoad& load, int64_t session)
      : load_(load),
        pause_(static_cast<size_t>(load.pause_seconds * LiveLoad::kRate)),
        clip_(static_cast<size_t>(session) % load.clips.size()) {}

  // Fills `piece`. False: it is over, and `piece` is silence from there on.
  bool next(std::vector<int16_t>& piece) {
    std::fill(piece.begin(), piece.end(), int16_t{0});
    for (size_t filled = 0; filled < piece.size();) {
      if (num_sent_ >= limit()) return filled > 0;
      const std::vector<int16_t>& clip = load_.clips[clip_];
      const size_t end = clip.size() + pause_;
      const size_t count = std::min({piece.size() - filled, end - at_, limit() - num_sent_});
      for (size_t i = 0; i < count && at_ + i < clip.size(); ++i) piece[filled + i] = clip[at_ + i];
      at_ += count;
      filled += count;
      num_sent_ += count;
      if (at_ == end) {
        at_ = 0;
        clip_ = (clip_ + 1) % load_.clips.size();
      }
    }
    return true;
  }

 private:
  size_t limit() const {
    if (load_.seconds > 0) return static_cast<size_t>(load_.seconds * LiveLoad::kRate);
    size_t all = 0;
    for (const auto& clip : load_.clips) all += clip.size() + pause_;
    return all;
  }

  const LiveLoad& load_;
  const size_t pause_;
  size_t clip_, at_ = 0, num_sent_ = 0;
};

class Speaker final {
 public:
  Speaker(const LiveLoad& load, int64_t session) : load_(load), recording_(load, session) {}

  LiveSessionMeasure run() {
    HttpUrl url = load_.url;
    url.path += "/realtime?model=" + load_.model;
    HttpHeaders headers;
    if (!load_.api_key.empty()) headers.emplace_back("Authorization", "Bearer " + load_.api_key);
    auto client = WebSocketClient::connect(url, headers,
                                           {.on_message = [this](const std::string& message) { take(message); },
                                            .on_closed = [this](uint16_t) { close(); }},
                                           {});
    if (!client.ok()) return {.error = error_message(client.status())};
    (*client)->send(configuration(load_).dump(), true);
    if (wait(&LiveMeter::is_ready)) speak(**client);
    client->reset();  // no further event
    const MutexLock lock(mutex_);
    LiveSessionMeasure measure = meter_.measured();
    measure.audio_s = audio_s_;
    measure.has_ended_early = has_ended_early_;
    if (!meter_.is_ready() && measure.error.empty()) measure.error = "the server did not take the configuration";
    return measure;
  }

 private:
  void take(const std::string& message) {
    const StatusOr<Json> event = Json::parse(message);
    const MutexLock lock(mutex_);
    if (event.ok()) meter_.take(*event, clock_.now());
  }
  void close() {
    const MutexLock lock(mutex_);
    is_closed_ = true;
    has_ended_early_ = !is_ending_;
  }

  // Until it holds, the connection has gone, or patience ends: whether it holds.
  bool wait(bool (LiveMeter::*holds)() const) {
    const TimePoint deadline = clock_.now() + load_.patience;
    for (;;) {
      {
        const MutexLock lock(mutex_);
        if ((meter_.*holds)()) return true;
        if (is_closed_) return false;
      }
      if (clock_.now() >= deadline || load_.is_stopped()) return false;
      std::this_thread::sleep_for(kLook);
    }
  }

  void speak(WebSocketClient& client) {
    std::vector<int16_t> piece(kPieceSamples);
    const TimePoint begin = clock_.now();
    {
      const MutexLock lock(mutex_);
      meter_.begin(begin);
    }
    for (int64_t count = 0; recording_.next(piece) && !load_.is_stopped(); ++count) {
      // A microphone hands a piece on when its last sample has been heard.
      std::this_thread::sleep_until(begin + (count + 1) * kPiece);
      std::string bytes(piece.size() * sizeof(int16_t), '\0');
      std::memcpy(bytes.data(), piece.data(), bytes.size());
      if (load_.sends_binary) {
        client.send(std::move(bytes), false);
      } else {
        client.send(str_cat(R"({"type":"input_audio_buffer.append","audio":")", encode_base64(bytes), "\"}"), true);
      }
      audio_s_ += static_cast<double>(piece.size()) / LiveLoad::kRate;
      const MutexLock lock(mutex_);
      if (is_closed_) return;
    }
    wait(&LiveMeter::is_done);
    {
      const MutexLock lock(mutex_);
      is_ending_ = true;
    }
    client.close();
  }

  const LiveLoad& load_;
  Recording recording_;
  const SteadyClock clock_;
  double audio_s_ = 0;
  Mutex mutex_;
  LiveMeter meter_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_early_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::vector<LiveSessionMeasure> run_live_load(const LiveLoad& load) {
  std::vector<LiveSessionMeasure> measured(static_cast<size_t>(load.num_sessions));
  std::vector<std::thread> threads;
  threads.reserve(measured.size());
  for (size_t i = 0; i < measured.size(); ++i) {
    threads.emplace_back([&load, &measured, i] { measured[i] = Speaker(load, static_cast<int64_t>(i)).run(); });
  }
  for (std::thread& thread : threads) thread.join();
  return measured;
}

LiveMetrics measure_live(const std::vector<LiveSessionMeasure>& sessions, double hop_s, const CountWords& count_words) {
  constexpr double kLate = 0.5;
  LiveMetrics all;
  std::vector<double> first_text, completed, hops;
  for (const LiveSessionMeasure& session : sessions) {
    const bool has_failed = !session.error.empty() || session.has_ended_early;
    ++all.num_sessions;
    if (has_failed) ++all.num_failed;
    all.audio_s += session.audio_s;
    for (const LiveTurnMeasure& turn : session.turns) {
      ++all.num_turns;
      if (turn.has_failed) ++all.num_failed_turns;
      if (turn.is_revised) ++all.num_revised;
      if (turn.transcript.empty()) ++all.num_without_text;
      if (turn.first_text_s >= 0) first_text.push_back(turn.first_text_s);
      if (turn.completed_s >= 0) completed.push_back(turn.completed_s);
      if (turn.completed_s < 0 || turn.has_failed) continue;
      const auto [told, revised] =
          count_words(std::string_view(turn.told).substr(0, turn.num_early_bytes), turn.transcript);
      all.num_told_words += told;
      all.num_revised_words += revised;
    }
    hops.insert(hops.end(), session.hops.begin(), session.hops.end());
    const Statistics hop = statistics_of(session.hops);
    if (!has_failed && (hop.count == 0 || hop.p95 <= hop_s + kLate)) ++all.num_kept_up;
  }
  all.first_text = statistics_of(std::move(first_text));
  all.completed = statistics_of(std::move(completed));
  all.hop = statistics_of(std::move(hops));
  return all;
}

Json live_metrics_json(const LiveMetrics& metrics) {
  Json json = Json::object();
  json.set("sessions", metrics.num_sessions);
  json.set("failed_sessions", metrics.num_failed);
  json.set("sessions_that_kept_up", metrics.num_kept_up);
  json.set("audio_seconds", metrics.audio_s);
  json.set("turns", metrics.num_turns);
  json.set("failed_turns", metrics.num_failed_turns);
  json.set("turns_without_text", metrics.num_without_text);
  json.set("revised_turns", metrics.num_revised);
  json.set("told_words", metrics.num_told_words);
  json.set("revised_words", metrics.num_revised_words);
  json.set("first_text_s", statistics_json(metrics.first_text));
  json.set("completed_s", statistics_json(metrics.completed));
  json.set("hypothesis_interval_s", statistics_json(metrics.hop));
  return json;
}

std::string live_metrics_table(const LiveMetrics& metrics) {
  std::string table =
      str_cat("sessions          ", metrics.num_sessions, ", ", metrics.num_kept_up, " kept up, ", metrics.num_failed,
              " failed\nturns             ", metrics.num_turns, ", ", metrics.num_revised, " revised, ",
              metrics.num_without_text, " without text, ", metrics.num_failed_turns, " failed\nwords             ",
              metrics.num_told_words, " told while one spoke, ", metrics.num_revised_words, " of them revised\n");
  const auto add = [&](const char* name, const Statistics& found) {
    char line[160];
    if (found.count == 0) {
      std::snprintf(line, sizeof line, "%-18snone\n", name);
    } else {
      std::snprintf(line, sizeof line, "%-18sp50 %.2f s, p90 %.2f s, p95 %.2f s, max %.2f s (%zu)\n", name, found.p50,
                    found.p90, found.p95, found.max, found.count);
    }
    table += line;
  };
  add("first text", metrics.first_text);
  add("completed", metrics.completed);
  add("hypotheses", metrics.hop);
  return table;
}

}  // namespace transept
