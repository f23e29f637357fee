// Replays recordings as live sessions, all at once and in real time, and says what was told when. With speed=0 as if
// computing took no time: the next 20 ms are heard when nothing is left to be done, so what is told does not depend on
// the machine.
//
//   live_probe MODEL [delay=low] [turns=1] [speed=1] [threads=2] [quantization=int8] FILE...
//
// A line a file: "FILE seconds=8.1 first=1.6 told=20 revised=1 late=0.12 same=1": seconds of audio at the first word,
// words before the commit and those that the transcript has otherwise, seconds from commit to transcript (the last
// item's), and whether it is what Transcriber gives for the file (without turns). Then what was told, a line each time
// with the seconds of audio that had been sent ("  at=1.62 And so"), and the transcript. In the end a line of sums.
// tools/measure_live.py reads it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/mutex.h"
#include "speech/characters.h"
#include "speech/live_session.h"
#include "speech/transcriber.h"
#include "startup/load_engine.h"

namespace {

using namespace transept;  // NOLINT: a program

class Listener final : public LiveObserver {
 public:
  explicit Listener(const Clock& clock) : clock_(clock) {}
  void on_speech_started(int64_t, int64_t) override {}
  void on_speech_stopped(int64_t, int64_t) override { committed_at = clock_.now(); }
  void on_committed(int64_t) override { committed_at = clock_.now(); }
  void on_cleared() override {}
  void on_delta(int64_t, std::string_view words) override { deltas.emplace_back(heard_seconds.load(), words); }
  void on_hypothesis(int64_t, std::string_view) override {}
  void on_completed(int64_t, const LiveTranscript& transcript) override {
    late = seconds(clock_.now() - committed_at);
    told += transcript.num_words_told;
    revised += transcript.num_words_revised;
    text += (text.empty() ? "" : " ") + transcript.text;
    language = transcript.language;
  }
  void on_failed(int64_t, const Status& error) override { std::printf("failed: %s\n", error.ToString().c_str()); }
  void on_audio_taken() override {}
  void on_finished() override {
    const MutexLock lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }
  void wait() {
    const MutexLock lock(mutex_);
    while (!finished_) changed_.wait(mutex_);
  }

  std::atomic<double> heard_seconds{0};
  double late = 0;
  std::vector<std::pair<double, std::string>> deltas;  // seconds of audio that had been sent, and what was told
  int64_t told = 0, revised = 0;
  std::string text, language;

 private:
  const Clock& clock_;
  TimePoint committed_at{};
  Mutex mutex_;
  CondVar changed_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

struct Speaker {
  std::string file;
  AudioBytes bytes;
  std::vector<int16_t> samples;
  size_t next = 0;
  std::shared_ptr<Listener> listener;
  std::unique_ptr<LiveSession> session;
};

template <typename T>
T need(StatusOr<T> value) {
  if (value.ok()) return std::move(value).value();
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

std::vector<int16_t> samples_of(const AudioBytes& bytes) {
  std::vector<int16_t> samples;
  const auto reader = need(AudioReader::open(bytes, {}));
  for (const float sample : need(read_all(*reader))) samples.push_back(static_cast<int16_t>(sample * 32768.0f));
  return samples;
}

void wait_until_idle(std::span<const Speaker> speakers) {
  for (const Speaker& speaker : speakers) {
    while (!speaker.session->is_idle()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// All at once, `speed` times as fast as they were spoken. 0: each piece when all that the one before it brought is
// done.
void play(std::vector<Speaker>& speakers, bool has_turns, double speed, const Clock& clock) {
  constexpr size_t kPiece = 320;  // 20 ms
  const TimePoint begin = clock.now();
  for (int64_t piece = 1;; ++piece) {
    bool has_more = false;
    for (Speaker& speaker : speakers) {
      const auto rest = std::span(speaker.samples).subspan(speaker.next);
      if (rest.empty()) continue;
      has_more = true;
      const auto part = rest.first(std::min(kPiece, rest.size()));
      if (const Status status = speaker.session->append_pcm16(part); !status.ok()) std::exit(2);
      speaker.next += part.size();
      speaker.listener->heard_seconds = static_cast<double>(speaker.next) / 16000;
      if (speaker.next < speaker.samples.size()) continue;
      if (!has_turns) (void)speaker.session->commit();
      speaker.session->finish();
    }
    if (!has_more) break;
    if (speed == 0) {
      wait_until_idle(speakers);
      continue;
    }
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
                                              static_cast<double>(piece) * 0.02 / speed)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  EngineConfig config;
  LiveOptions options;
  options.sampling_rate = 16000;
  options.turn_detection = std::nullopt;
  double speed = 1;
  std::vector<Speaker> speakers;
  config.threads = 2;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (i == 1) {
      config.model = word;
    } else if (name == "delay") {
      options.delay = parse_live_delay(value).value();
    } else if (name == "turns") {
      options.turn_detection = LiveTurnDetection{};
    } else if (name == "speed") {
      speed = std::atof(value.c_str());
    } else if (name == "threads") {
      config.threads = std::atoi(value.c_str());
    } else if (name == "quantization") {
      config.quantization = value;
    } else {
      speakers.push_back({.file = word, .bytes = need(AudioBytes::from_file(word))});
    }
  }
  SteadyClock clock;
  LoadedModel model = need(load_engine(config, clock));
  AsyncEngine engine(std::move(model.engine), {}, clock);
  const SpeechModel speech = need(SpeechModel::of(model, engine));
  LiveHost::Options host_options;
  host_options.max_sessions = 1000;
  host_options.transcribe.skip_silence = true;
  host_options.transcribe.beam_size = 1;
  const auto host = need(LiveHost::create(speech, host_options));
  for (Speaker& speaker : speakers) {
    speaker.samples = samples_of(speaker.bytes);
    speaker.listener = std::make_shared<Listener>(clock);
    speaker.session = need(LiveSession::create(*host, options, speaker.listener));
  }
  play(speakers, options.turn_detection.has_value(), speed, clock);
  int64_t told = 0, revised = 0, num_same = 0;
  for (Speaker& speaker : speakers) {
    speaker.listener->wait();
    speaker.session.reset();
    const Listener& heard = *speaker.listener;
    TranscribeOptions offline = host_options.transcribe;
    if (speech.tokens != nullptr) offline.language = heard.language;
    const TranscribeResult result = need(Transcriber(speech).transcribe(AudioSource(speaker.bytes), offline));
    const bool is_same = strip_space(result.transcript.text) == heard.text;
    std::printf("%s seconds=%.1f first=%.2f told=%d revised=%d late=%.3f same=%d\n", speaker.file.c_str(),
                static_cast<double>(speaker.samples.size()) / 16000,
                heard.deltas.empty() ? -1 : heard.deltas.front().first, static_cast<int>(heard.told),
                static_cast<int>(heard.revised), heard.late, is_same ? 1 : 0);
    for (const auto& [at, words] : heard.deltas) std::printf("  at=%.2f %s\n", at, words.c_str());
    std::printf("  %s\n", heard.text.c_str());
    if (!is_same) std::printf("  offline: %s\n", result.transcript.text.c_str());
    told += heard.told, revised += heard.revised, num_same += is_same ? 1 : 0;
  }
  const LiveCounts counts = host->counts();
  std::printf("all: told=%d revised=%d same=%d of %d hypotheses=%d lost=%d early=%d\n", static_cast<int>(told),
              static_cast<int>(revised), static_cast<int>(num_same), static_cast<int>(speakers.size()),
              static_cast<int>(counts[LiveCount::kHypotheses]), static_cast<int>(counts[LiveCount::kLostHypotheses]),
              static_cast<int>(counts[LiveCount::kEarlyFinals]));
  return 0;
}
