#include "speech/live_hypotheses.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "speech/window_segments.h"

namespace transept {
namespace {

// Frames.
constexpr int64_t kBeforeSpeech = 50;  // that a window has before its first speech
constexpr int64_t kLongWindow = 1500;  // from here on it is cut where it can be
constexpr int64_t kLongestWindow = 2800;
constexpr int64_t kCutWithin = 500;         // of its end, at the quietest place
constexpr int64_t kPause = 30;              // that a long window may be cut in
constexpr int64_t kSilence = 200;           // that settles what was said before
constexpr int64_t kLostWindow = 6000;       // nothing has been answered for long: begin anew
constexpr double kSureLanguageSeconds = 5;  // guesses over more audio are taken as they are

int64_t frames_of(double seconds) { return std::llround(seconds * kFramesPerSecond); }

}  // namespace

void LiveHypotheses::set_options(std::unique_ptr<WindowDecoder> decoder, const LivePolicy& policy, double threshold) {
  if (attempt_.has_value()) tally_[LiveCount::kLostHypotheses] += 1;
  attempt_.reset();
  decoder_ = std::move(decoder);
  policy_ = policy;
  threshold_ = static_cast<float>(threshold);
  has_language_ = is_language_kept_ = !decoder_->needs_language();
  previous_.emplace(decoder_->initial_prompt_ids(), false, decoder_->max_previous_tokens(), decoder_->hotword_ids());
}

Status LiveHypotheses::keep_language(const std::string& language) {
  RETURN_IF_ERROR(decoder_->set_language(language));
  has_language_ = is_language_kept_ = true;
  return ok_status();
}

void LiveHypotheses::begin_audio() {
  end_item();
  num_heard_ = 0;
}

void LiveHypotheses::begin_item(int64_t frame, std::optional<int64_t> speech) {
  item_begin_ = frame;
  agreement_ = LocalAgreement();
  previous_.emplace(decoder_->initial_prompt_ids(), false, decoder_->max_previous_tokens(), decoder_->hotword_ids());
  has_language_ = is_language_kept_;
  delta_.clear();
  has_news_ = false;
  begin_window(frame);
  last_speech_ = speech;
  if (!speech.has_value()) return;
  last_end_ = std::max(frame, *speech);
  spoke_since_ = true;
}

std::string LiveHypotheses::end_item() {
  if (attempt_.has_value()) tally_[LiveCount::kLostHypotheses] += 1;
  attempt_.reset();
  item_begin_.reset();
  levels_.clear();
  return agreement_.told();
}

void LiveHypotheses::begin_window(int64_t frame) {
  // Levels are of the last frames that were heard.
  const int64_t num_known = std::clamp<int64_t>(num_heard_ - frame, 0, std::ssize(levels_));
  levels_.erase(levels_.begin(), levels_.end() - num_known);
  window_begin_ = last_end_ = frame;
  last_tokens_.clear();
  num_quiet_ = 0;
  if (last_speech_.has_value() && *last_speech_ < frame) last_speech_.reset();
}

void LiveHypotheses::hear(const FrameVoice& voice) {
  const int64_t frame = num_heard_++;
  if (!item_begin_.has_value() || !policy_.has_hypotheses) return;  // nobody reads its level
  if (frame >= window_begin_) levels_.push_back(voice.level);
  if (frame < window_begin_ || voice.probability < threshold_) return;
  if (!last_speech_.has_value()) last_end_ = std::max(last_end_, frame);
  last_speech_ = frame;
  spoke_since_ = true;
  num_quiet_ = 0;
}

int64_t LiveHypotheses::first_needed() const {
  if (!item_begin_.has_value() || !policy_.has_hypotheses) return num_heard_ - kBeforeSpeech;
  return window_begin_;
}

int64_t LiveHypotheses::quietest(int64_t begin, int64_t end) const {
  const int64_t first_known = num_heard_ - std::ssize(levels_);
  const int64_t from = std::max(begin, first_known), to = std::min(end, num_heard_);
  if (from >= to) return end;
  const auto at = [&](int64_t frame) { return levels_.begin() + static_cast<std::ptrdiff_t>(frame - first_known); };
  return first_known + (std::min_element(at(from), at(to)) - levels_.begin());
}

void LiveHypotheses::consider(const LiveEar& ear) {
  if (!item_begin_.has_value() || !policy_.has_hypotheses) return;
  if (!last_speech_.has_value()) {  // nothing to be heard in the window yet
    begin_window(std::max(window_begin_, num_heard_ - kBeforeSpeech));
    return;
  }
  const int64_t now = ear.num_frames();
  if (now - window_begin_ > kLostWindow) {
    if (attempt_.has_value()) tally_[LiveCount::kLostHypotheses] += 1;
    attempt_.reset();
    tell(agreement_.close_window());
    begin_window(now - kLongWindow);
    last_speech_ = now;
  }
  if (attempt_.has_value()) return;
  std::optional<Attempt> attempt = next_attempt(now);
  if (!attempt.has_value()) return;
  attempt->features = ear.features(attempt->begin, attempt->end);
  start(std::move(*attempt));
}

std::optional<LiveHypotheses::Attempt> LiveHypotheses::next_attempt(int64_t now) {
  Attempt attempt;
  attempt.begin = window_begin_;
  attempt.end = now;
  const int64_t length = now - window_begin_;
  const int64_t pause = num_heard_ - 1 - *last_speech_;
  if (length >= kLongestWindow) {
    const int64_t end = window_begin_ + kLongestWindow;
    attempt.end = quietest(end - kCutWithin, end);
    attempt.closes_window = true;
    return attempt;
  }
  if (length > kLongWindow && pause >= kPause) {
    attempt.closes_window = true;
    return attempt;
  }
  if (now - last_end_ < frames_of(policy_.hop_seconds)) return std::nullopt;
  // What was said last needs others to agree on it, though there is no more speech.
  if (!spoke_since_) {
    const bool is_silent = pause >= kSilence;
    if (is_silent) settle_silence();
    if (is_silent || num_quiet_ + 1 >= std::ssize(policy_.agreement) || !agreement_.has_open_words()) {
      return std::nullopt;
    }
    ++num_quiet_;
  }
  return attempt;
}

void LiveHypotheses::settle_silence() {
  tell(agreement_.close_window());
  previous_->append(last_tokens_);
  begin_window(std::max(window_begin_, num_heard_ - kBeforeSpeech));
  last_speech_.reset();
}

void LiveHypotheses::start(Attempt attempt) {
  last_end_ = attempt.end;
  spoke_since_ = false;
  attempt.asks_language = !has_language_;
  // A full queue, say: the next hop tries again.
  if (!ask(attempt).ok()) {
    tally_[LiveCount::kLostHypotheses] += 1;
    return;
  }
  attempt_ = std::move(attempt);
}

Status LiveHypotheses::ask(Attempt& attempt) {
  const double seconds = static_cast<double>(attempt.end - attempt.begin) / kFramesPerSecond;
  RequestSpec spec = attempt.asks_language
                         ? decoder_->language_request(attempt.features)
                         : decoder_->attempt_request(attempt.features, previous_->prompt(), seconds, last_tokens_);
  spec.priority = kLiveHypothesisPriority;
  spec.on_ready = on_ready_;
  ASSIGN_OR_RETURN(RequestStream stream, model_.engine->add_request(std::move(spec)));
  attempt.stream.emplace(std::move(stream));
  return ok_status();
}

void LiveHypotheses::take_answer() {
  while (attempt_.has_value()) {
    const std::optional<StatusOr<RequestOutput>> answered = attempt_->stream->try_next();
    if (!answered.has_value()) return;
    Status status = answered->status();
    if (status.ok() && attempt_->asks_language) {
      status = read_language(**answered, static_cast<double>(attempt_->end - attempt_->begin) / kFramesPerSecond);
      attempt_->asks_language = false;
      if (status.ok()) status = ask(*attempt_);
      if (status.ok()) continue;
    }
    const Attempt attempt = std::move(*attempt_);
    attempt_.reset();
    if (status.ok()) status = read(attempt, **answered);
    (status.ok() ? tally_[LiveCount::kHypotheses] : tally_[LiveCount::kLostHypotheses]) += 1;
  }
}

Status LiveHypotheses::read_language(const RequestOutput& output, double seconds) {
  ASSIGN_OR_RETURN(const std::vector<LanguageGuess> guesses, decoder_->language_guesses(output));
  const LanguageGuess& best = guesses.front();
  RETURN_IF_ERROR(decoder_->set_language(best.code));
  has_language_ = best.probability >= TranscribeOptions().sure_language || seconds >= kSureLanguageSeconds;
  return ok_status();
}

Status LiveHypotheses::read(const Attempt& attempt, const RequestOutput& output) {
  ASSIGN_OR_RETURN(WindowAnswer answer, decoder_->attempt_answer(output));
  const DecodingThresholds thresholds;
  const bool is_loop = answer.scores.compression_ratio > *thresholds.compression_ratio;
  if (is_silence(answer.scores, thresholds)) answer.tokens.clear();
  if (!is_loop) {
    const bool may_confirm = answer.scores.avg_logprob >= policy_.least_mean_logprob;
    tell(agreement_.add(heard_text(answer), may_confirm ? policy_.agreement : AgreementRule{INFINITY}));
    last_tokens_ = answer.tokens;
  }
  if (attempt.closes_window) {
    tell(agreement_.close_window());
    if (!is_loop) previous_->append(answer.tokens);
    begin_window(attempt.end);
    spoke_since_ = last_speech_.has_value();
  } else if (!is_loop && attempt.end - attempt.begin > kLongWindow) {
    cut_behind_segments(answer, attempt.end - attempt.begin);
  }
  return ok_status();
}

HeardText LiveHypotheses::heard_text(const WindowAnswer& answer) const {
  HeardText heard{.text = decoder_->whole_text(answer.tokens)};
  const std::vector<size_t> ends = decoder_->text_ends(answer.tokens);
  const size_t count = std::min(ends.size(), answer.logprobs.size());
  for (size_t i = 0; i < count; ++i) heard.tokens.push_back({ends[i], answer.logprobs[i]});
  return heard;
}

// The window begins behind the last segment whose words are told.
void LiveHypotheses::cut_behind_segments(const WindowAnswer& answer, int64_t num_frames) {
  if (model_.tokens == nullptr || !model_.tokens->no_timestamps.has_value()) return;
  const WindowSegments cut = window_segments(
      {.tokens = answer.tokens, .segment_size = num_frames, .timestamp_begin = *model_.tokens->timestamp_begin()});
  const std::string whole = decoder_->whole_text(answer.tokens);
  size_t num_tokens = 0, best_tokens = 0, best_bytes = 0;
  int64_t best_end = 0;
  for (const Segment& segment : cut.segments) {
    num_tokens += segment.tokens.size();
    const std::string text = decoder_->whole_text(std::span(answer.tokens).first(num_tokens));
    const int64_t end = frames_of(segment.end);
    if (!whole.starts_with(text) || !agreement_.is_told(text.size()) || end >= num_frames) break;
    best_tokens = num_tokens, best_bytes = text.size(), best_end = end;
  }
  if (best_end == 0) return;
  tell(agreement_.cut_window(best_bytes));
  previous_->append(std::span(answer.tokens).first(best_tokens));
  const int64_t last_end = last_end_;
  begin_window(window_begin_ + best_end);
  last_end_ = last_end;
}

void LiveHypotheses::tell(std::string_view delta) {
  delta_ += delta;
  has_news_ = true;
}

std::optional<LiveHypotheses::News> LiveHypotheses::take_news() {
  if (!std::exchange(has_news_, false)) return std::nullopt;
  return News{std::exchange(delta_, {}), std::string(agreement_.open())};
}

}  // namespace transept
