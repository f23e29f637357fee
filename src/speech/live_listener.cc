#include "speech/live_listener.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "speech/characters.h"

namespace transept {
namespace {

constexpr double kMostUnbegunSeconds = 60;  // of audio whose finals wait for others
constexpr double kKeptLanguageSeconds = 5;  // of an item that tells the language of the next ones
constexpr int64_t kPieceMs = 100;

// Those that have log-probabilities, and are text.
std::vector<LiveToken> tokens_of(const Transcript& transcript, const SpeechModel& model) {
  std::vector<LiveToken> tokens;
  std::vector<int32_t> previous;
  for (const Segment& segment : transcript.segments) {
    for (size_t i = 0; i < segment.token_logprobs.size(); ++i) {
      const int32_t id = segment.tokens[i];
      const bool is_text = model.tokens == nullptr || id < model.generation->eos_token_ids.front();
      if (!is_text || model.tokenizer->is_special(id)) continue;
      LiveToken token{.logprob = segment.token_logprobs[i]};
      model.tokenizer->append_bytes(previous, id, token.bytes);
      previous.push_back(id);
      tokens.push_back(std::move(token));
    }
  }
  return tokens;
}

}  // namespace

StatusOr<std::unique_ptr<WindowDecoder>> LiveListener::make_decoder(const House& house, const LiveOptions& options) {
  TranscribeOptions greedy = live_transcribe_options(*house.transcribe, options, *house.model);
  greedy.beam_size = 1;
  greedy.temperature = 0;
  greedy.temperature_increment = std::nullopt;
  greedy.patience = std::nullopt;
  greedy.best_of = 1;
  greedy.word_timestamps = false;
  greedy.token_logprobs = true;  // which words are sure
  greedy.hallucination_silence_threshold = std::nullopt;
  greedy.prefix.clear();
  auto decoder = WindowDecoder::create(*house.model, greedy, {});
  const Status& status = decoder.status();
  if (error_param(status) != "initial_prompt") return decoder;
  return field_error("prompt", error_message(status));
}

LiveListener::LiveListener(House house, LiveObserver& observer, const LiveOptions& options,
                           std::unique_ptr<WindowDecoder> decoder)
    : house_(std::move(house)),
      observer_(observer),
      options_(options),
      hypotheses_(*house_.model, *house_.tally, house_.on_ready) {
  make_ear();
  const double threshold = options.turn_detection.value_or(LiveTurnDetection()).threshold;
  hypotheses_.set_options(std::move(decoder), live_policy(options.delay), threshold);
}

void LiveListener::make_ear() {
  ear_ = std::make_unique<LiveEar>(*house_.model->audio, *house_.voice_mel, options_.sampling_rate);
  recording_ = LiveRecording();
  num_decided_ = 0;
  turns_.reset();
  if (options_.turn_detection.has_value()) turns_.emplace(*options_.turn_detection);
}

// ---- Places. Items of turn detection begin and end at whole milliseconds.

int64_t LiveListener::sample_at(int64_t ms) const { return ms * options_.sampling_rate / 1000; }
int64_t LiveListener::ms_before(int64_t sample) const { return sample * 1000 / options_.sampling_rate; }
int64_t LiveListener::ms_after(int64_t sample) const {
  return (sample * 1000 + options_.sampling_rate - 1) / options_.sampling_rate;
}
int64_t LiveListener::frame_at(int64_t sample) const { return ms_before(sample) / kTurnFrameMs; }

// ---- Audio

void LiveListener::hear(std::span<const int16_t> samples) {
  // Piece by piece, so that a hypothesis over the beginning of much audio does not wait for its end.
  const auto piece = static_cast<size_t>(sample_at(kPieceMs));
  while (!samples.empty()) {
    const std::span<const int16_t> part = samples.first(std::min(piece, samples.size()));
    samples = samples.subspan(part.size());
    hear_piece(part);
  }
}

void LiveListener::hear_piece(std::span<const int16_t> samples) {
  const int64_t begin = recording_.end();
  recording_.append(samples);
  (*house_.tally)[LiveCount::kAudioMs] += ms_before(recording_.end()) - ms_before(begin);
  if (!turns_.has_value() && !item_.has_value()) begin_item(begin, std::nullopt);
  decided_.clear();
  ear_->push(samples, decided_);
  hear_frames(decided_);
  hypotheses_.consider(*ear_);
  tell_news();
  forget();
}

void LiveListener::hear_frames(std::span<const FrameVoice> frames) {
  for (const FrameVoice& frame : frames) {
    ++num_decided_;
    hypotheses_.hear(frame);
    if (!turns_.has_value()) continue;
    events_.clear();
    turns_->push(frame, events_);
    for (const TurnEvent& event : events_) on_turn(event);
  }
}

void LiveListener::on_turn(const TurnEvent& event) {
  switch (event.kind) {
    case TurnEvent::Kind::kStarted: {
      const int64_t begin = sample_at(event.ms);
      observer_.on_speech_started(next_item_, base_ms_ + event.ms);
      begin_item(begin, event.ms / kTurnFrameMs + turns_->prefix_ms() / kTurnFrameMs);
      break;
    }
    case TurnEvent::Kind::kPaused: begin_early(sample_at(event.ms)); break;
    case TurnEvent::Kind::kResumed: drop_early(); break;
    case TurnEvent::Kind::kStopped:
      observer_.on_speech_stopped(item_->number, base_ms_ + event.ms);
      commit_item(sample_at(event.ms));
      break;
  }
}

// What no item and no hypothesis needs any more.
void LiveListener::forget() {
  ear_->forget(hypotheses_.first_needed());
  if (turns_.has_value() && !item_.has_value()) recording_.forget(sample_at(turns_->earliest_ms()));
}

// ---- Items

void LiveListener::begin_item(int64_t begin, std::optional<int64_t> speech) {
  item_ = Item{next_item_++, std::max(begin, recording_.begin())};
  hypotheses_.begin_item(std::max(frame_at(item_->begin), ear_->first_frame()), speech);
}

// Commits [the item's begin, end).
void LiveListener::commit_item(int64_t end) {
  const Item item = *std::exchange(item_, std::nullopt);
  end = std::min(end, recording_.end());  // a rate that is no multiple of the model's: a sample or two
  Final final;
  final.item = item.number;
  final.seconds = static_cast<double>(end - item.begin) / options_.sampling_rate;
  final.num_words_told = hypotheses_.num_told_words();
  tell_news();
  final.told = hypotheses_.end_item();
  if (early_.has_value() && early_->begin == item.begin && early_->end == end) {
    final.transcript = early_->transcript;
    early_.reset();
    (*house_.tally)[LiveCount::kEarlyFinals] += 1;
    house_.on_ready();  // it may have been complete already, when it was no final that could be told
  } else {
    drop_early();
    final.audio = recording_.wav(item.begin, end, options_.sampling_rate);
    final.options = final_options();
  }
  recording_.forget(end);
  finals_.push_back(std::move(final));
  *house_.num_open_finals = std::ssize(finals_);
  observer_.on_committed(item.number);
  begin_next_final();
}

void LiveListener::drop_item() {
  drop_early();
  if (!item_.has_value()) return;
  hypotheses_.end_item();
  item_.reset();
  (*house_.tally)[LiveCount::kDropped] += 1;
}

// The next turn begins behind what was heard.
void LiveListener::cut_turns() {
  if (!turns_.has_value()) return;
  events_.clear();
  turns_->cut(ms_after(recording_.end()), events_);
  for (const TurnEvent& event : std::exchange(events_, {})) on_turn(event);
}

void LiveListener::commit() {
  const int64_t begin = item_.has_value() ? item_->begin : recording_.begin();
  // Turn detection has committed it in the meantime.
  if (ms_before(recording_.end() - begin) < kMinCommitMs) return;
  if (!item_.has_value()) begin_item(begin, std::nullopt);
  commit_item(recording_.end());
  cut_turns();
}

void LiveListener::clear() {
  drop_item();
  recording_.forget(recording_.end());
  observer_.on_cleared();
  cut_turns();
}

void LiveListener::set_options(const LiveOptions& options, std::unique_ptr<WindowDecoder> decoder) {
  const LiveOptions before = std::exchange(options_, options);
  drop_early();
  if (options.language != before.language || options.languages != before.languages) kept_language_.clear();
  const double threshold = options.turn_detection.value_or(LiveTurnDetection()).threshold;
  hypotheses_.set_options(std::move(decoder), live_policy(options.delay), threshold);
  if (!kept_language_.empty() && !hypotheses_.keep_language(kept_language_).ok()) kept_language_.clear();
  if (options.sampling_rate != before.sampling_rate) {
    base_ms_ += (recording_.end() * 1000 + before.sampling_rate - 1) / before.sampling_rate;
    drop_item();
    hypotheses_.begin_audio();
    return make_ear();
  }
  if (!options.turn_detection.has_value()) {
    if (turns_.has_value() && !item_.has_value()) recording_.forget(recording_.end());
    turns_.reset();
  } else if (turns_.has_value()) {
    turns_->set_options(*options.turn_detection);
  } else {
    turns_.emplace(*options.turn_detection, num_decided_);
    if (item_.has_value()) turns_->open(ms_before(item_->begin));
  }
}

void LiveListener::finish() {
  if (std::exchange(has_finished_, true)) return;
  decided_.clear();
  ear_->finish(decided_);
  hear_frames(decided_);
  if (turns_.has_value() && item_.has_value() && ms_before(recording_.end() - item_->begin) >= kMinCommitMs) {
    const int64_t end_ms = ms_before(recording_.end());
    observer_.on_speech_stopped(item_->number, base_ms_ + end_ms);
    commit_item(sample_at(end_ms));
  }
  drop_item();
  tell_end();
}

// ---- Answers

void LiveListener::take_answers() {
  hypotheses_.take_answer();
  tell_news();
  while (!finals_.empty() && finals_.front().transcript != nullptr) {
    std::optional<LiveFinalAnswer> answer = finals_.front().transcript->take_answer();
    if (!answer.has_value()) break;
    const Final final = std::move(finals_.front());
    finals_.pop_front();
    *house_.num_open_finals = std::ssize(finals_);
    complete(final, *std::move(answer));
    begin_next_final();
  }
  hypotheses_.consider(*ear_);
  tell_news();
  tell_end();
}

void LiveListener::tell_news() {
  const std::optional<LiveHypotheses::News> news = hypotheses_.take_news();
  if (!news.has_value() || !item_.has_value()) return;
  if (!news->delta.empty()) observer_.on_delta(item_->number, news->delta);
  if (options_.wants_hypotheses) observer_.on_hypothesis(item_->number, news->open);
}

void LiveListener::complete(const Final& final, LiveFinalAnswer answer) {
  LiveTally& tally = *house_.tally;
  if (!answer.result.ok()) {
    tally[LiveCount::kFailed] += 1;
    return observer_.on_failed(final.item, answer.result.status());
  }
  keep_language(answer, final.seconds);
  LiveTranscript transcript;
  transcript.text = strip_space(answer.result->transcript.text);
  transcript.was_revised = !transcript.text.starts_with(final.told);
  transcript.seconds = final.seconds;
  transcript.language = answer.result->transcript.language;
  transcript.languages = std::move(answer.languages);
  transcript.tokens = tokens_of(answer.result->transcript, *house_.model);
  transcript.num_words_told = final.num_words_told;
  if (transcript.was_revised) transcript.num_words_revised = num_revised_words(final.told, transcript.text);
  transcript.counts = answer.result->counts;
  transcript.times = answer.result->times;
  tally[LiveCount::kCompleted] += 1;
  tally[LiveCount::kRevised] += transcript.was_revised ? 1 : 0;
  tally[LiveCount::kWordsTold] += transcript.num_words_told;
  tally[LiveCount::kWordsRevised] += transcript.num_words_revised;
  const std::string_view rest =
      std::string_view(transcript.text).substr(transcript.was_revised ? 0 : final.told.size());
  if (!transcript.was_revised && !rest.empty()) observer_.on_delta(final.item, rest);
  observer_.on_completed(final.item, transcript);
}

// What a long item says surely is true of the next ones.
void LiveListener::keep_language(const LiveFinalAnswer& answer, double seconds) {
  if (!kept_language_.empty() || answer.languages.empty() || seconds < kKeptLanguageSeconds) return;
  const LanguageGuess& best = answer.languages.front();
  if (best.probability < TranscribeOptions().sure_language) return;
  if (hypotheses_.keep_language(best.code).ok()) kept_language_ = best.code;
}

void LiveListener::begin_next_final() {
  if (finals_.empty() || finals_.front().transcript != nullptr) return;
  Final& next = finals_.front();
  next.transcript = begin_final(std::exchange(next.audio, AudioBytes()), std::move(next.options));
}

TranscribeOptions LiveListener::final_options() const {
  return live_transcribe_options(*house_.transcribe, options_, *house_.model);
}

std::shared_ptr<LiveFinal> LiveListener::begin_final(AudioBytes audio, TranscribeOptions options) {
  if (options.language.empty()) options.language = kept_language_;
  auto final = std::make_shared<LiveFinal>(std::move(audio), std::move(options));
  house_.post([final, model = house_.model, on_ready = house_.on_ready] {
    final->run(*model);
    on_ready();
  });
  return final;
}

// Only where nothing else is to be transcribed: in turn its language might be another.
void LiveListener::begin_early(int64_t end) {
  drop_early();
  if (!finals_.empty()) return;
  end = std::min(end, recording_.end());
  AudioBytes audio = recording_.wav(item_->begin, end, options_.sampling_rate);
  early_ = EarlyFinal{item_->begin, end, begin_final(std::move(audio), final_options())};
}

void LiveListener::drop_early() {
  if (early_.has_value()) early_->transcript->stop();
  early_.reset();
}

bool LiveListener::is_full() const {
  double seconds = 0;
  for (size_t i = 1; i < finals_.size(); ++i) seconds += finals_[i].seconds;  // the first one runs
  return seconds > kMostUnbegunSeconds;
}

void LiveListener::tell_end() {
  if (has_finished_ && finals_.empty() && !std::exchange(was_end_told_, true)) observer_.on_finished();
}

void LiveListener::stop() {
  drop_item();
  for (const Final& final : finals_) {
    if (final.transcript != nullptr) final.transcript->stop();
  }
  finals_.clear();
}

}  // namespace transept
