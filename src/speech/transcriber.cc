#include "speech/transcriber.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "speech/audio_windows.h"
#include "speech/clip_runner.h"
#include "speech/silent_windows.h"
#include "speech/speech_spans.h"
#include "speech/spoken_audio.h"
#include "speech/window_decoder.h"

namespace transept {
namespace {

// One transcription.
class Run final {
 public:
  Run(const SpeechModel& model, const TranscribeOptions& options, const TranscribeObserver& observer,
      const TranscribeLimits& limits)
      : model_(model), options_(options), observer_(observer), limits_(limits) {}

  StatusOr<TranscribeResult> transcribe(const AudioSource& audio);

 private:
  Status settle_language(std::span<const FrameRange> clips, std::span<const FrameRange> windows);
  Status settle_language_of_silence();
  StatusOr<std::vector<float>> spoken_rows(int64_t begin, int64_t end);
  Status run_sequential(std::span<const FrameRange> clips);
  Status run_batched(std::span<const FrameRange> windows);
  Status run_window(const FrameRange& window, bool is_first, std::vector<float> rows, std::vector<Segment>& segments);
  std::vector<FrameRange> voiced_windows(std::span<const FrameRange> clips) const;
  std::optional<int64_t> language_frame(std::span<const FrameRange> clips) const;
  ClipRunner::Options runner_options() const;
  Status check_limits() const { return limits_.check(model_.engine->clock()); }
  void add_segments(std::span<const Segment> segments);
  void progress(int64_t frame);

  const SpeechModel& model_;
  const TranscribeOptions& options_;
  const TranscribeObserver& observer_;
  const TranscribeLimits& limits_;
  TranscribeMode mode_ = TranscribeMode::kSequential;
  std::unique_ptr<AudioWindows> windows_;
  std::unique_ptr<WindowDecoder> decoder_;
  std::optional<SilentWindows> silence_;  // none: no window is passed over
  std::optional<SpokenAudio> spoken_;     // none: clips are decoded as they are
  Transcript transcript_;
};

StatusOr<TranscribeResult> Run::transcribe(const AudioSource& audio) {
  RETURN_IF_ERROR(check_transcribe_options(options_));
  ASSIGN_OR_RETURN(decoder_, WindowDecoder::create(model_, options_, limits_));
  const bool has_timestamps = model_.tokens != nullptr && model_.tokens->no_timestamps.has_value();
  mode_ = options_.mode.value_or(has_timestamps ? TranscribeMode::kSequential : TranscribeMode::kBatched);
  AudioWindows::Options reading;
  reading.max_seconds = options_.max_audio_seconds;
  reading.find_voice = mode_ == TranscribeMode::kBatched || options_.skip_silence || options_.vad_filter;
  reading.before_read = [this] { return check_limits(); };
  ASSIGN_OR_RETURN(windows_, AudioWindows::open(audio, *model_.audio, reading));
  if (!windows_->warning().empty() && observer_.on_warning) observer_.on_warning(windows_->warning());
  ASSIGN_OR_RETURN(const std::vector<FrameRange> clips,
                   parse_clip_timestamps(options_.clip_timestamps, windows_->num_frames()));
  transcript_.duration = windows_->seconds();
  if (observer_.on_duration) observer_.on_duration(transcript_.duration);
  transcript_.has_words = options_.word_timestamps;
  const bool is_batched = mode_ == TranscribeMode::kBatched;
  if (options_.vad_filter && !is_batched) {
    spoken_.emplace(windows_->voice(), clips);
  } else if (options_.skip_silence) {
    silence_.emplace(windows_->voice());
  }
  const std::vector<FrameRange> windows = is_batched ? voiced_windows(clips) : clips;
  RETURN_IF_ERROR(settle_language(clips, windows));
  transcript_.language = decoder_->language();
  RETURN_IF_ERROR(is_batched ? run_batched(windows) : run_sequential(clips));
  std::vector<int32_t> tokens;
  for (const Segment& segment : transcript_.segments) {
    tokens.insert(tokens.end(), segment.tokens.begin(), segment.tokens.end());
  }
  transcript_.text = decoder_->whole_text(tokens);
  return TranscribeResult{std::move(transcript_), mode_, decoder_->counts(), decoder_->times()};
}

// From the features that SpeechReference names (where they are passed over as silence, from 30 s of what is spoken
// first); a first window that is these finds them encoded. A window of shorter audio is
// not: it ends in zeros of the features, not of the samples. Where it is sure of the language it is asked alone, and
// nothing is encoded twice; what is cut out of longer audio is not asked.
Status Run::settle_language(std::span<const FrameRange> clips, std::span<const FrameRange> windows) {
  if (!decoder_->needs_language()) return ok_status();
  const std::optional<int64_t> begin = language_frame(clips);
  if (!begin.has_value()) return settle_language_of_silence();
  const bool is_short = windows_->num_frames() < kWindowFrames && windows.size() == 1;
  const bool is_all = clips.size() == 1 && clips[0] == FrameRange{0, windows_->num_frames()};
  std::vector<LanguageGuess> guesses;
  if (spoken_.has_value()) {
    ASSIGN_OR_RETURN(const std::vector<float> rows, spoken_rows(0, std::min(kWindowFrames, spoken_->num_frames())));
    ASSIGN_OR_RETURN(guesses, decoder_->detect_language(windows_->features(rows)));
  } else if (is_short && is_all) {
    ASSIGN_OR_RETURN(const std::vector<float> rows, windows_->rows(windows[0].begin, windows[0].end));
    ASSIGN_OR_RETURN(guesses, decoder_->detect_language(windows_->features(rows)));
  }
  if (guesses.empty() || (!spoken_.has_value() && guesses.front().probability < options_.sure_language)) {
    const int64_t silence = options_.reference == SpeechReference::kFasterWhisper ? 1 : kWindowFrames;
    const int64_t end = *begin + std::min(kWindowFrames, windows_->num_frames() - *begin + silence);
    ASSIGN_OR_RETURN(const std::vector<float> rows, windows_->rows(*begin, end));
    ASSIGN_OR_RETURN(guesses, decoder_->detect_language(windows_->features(rows)));
  }
  if (observer_.on_language) observer_.on_language(guesses);
  return ok_status();
}

// faster-whisper's encoder gets one frame of silence, and zeros.
Status Run::settle_language_of_silence() {
  if (options_.reference != SpeechReference::kFasterWhisper) return ok_status();
  constexpr float kFloor = -10;
  const std::vector<float> rows(static_cast<size_t>(windows_->row_width()), kFloor);
  ASSIGN_OR_RETURN(const std::vector<LanguageGuess> guesses, decoder_->detect_language(windows_->features(rows)));
  if (observer_.on_language) observer_.on_language(guesses);
  return ok_status();
}

// The frame from which on the language is told; none: nobody speaks in the clips.
std::optional<int64_t> Run::language_frame(std::span<const FrameRange> clips) const {
  if (spoken_.has_value()) return spoken_->num_frames() > 0 ? std::optional<int64_t>(0) : std::nullopt;
  const bool is_clips = options_.reference == SpeechReference::kFasterWhisper && !clips.empty();
  const int64_t start = is_clips && clips[0].begin < windows_->num_frames() ? clips[0].begin : 0;
  if (!silence_.has_value()) return start;
  const auto spoken = std::ranges::find_if(clips, [&](const FrameRange& clip) { return !silence_->is_silent(clip); });
  if (spoken == clips.end()) return std::nullopt;
  const bool begins_silent = silence_->is_silent({start, std::min(start + kWindowFrames, windows_->num_frames())});
  return begins_silent ? silence_->first_speech(*spoken) : start;
}

ClipRunner::Options Run::runner_options() const {
  ClipRunner::Options options;
  options.asked = &options_;
  options.num_frames = windows_->num_frames();
  const bool has_timestamps = model_.tokens != nullptr && model_.tokens->no_timestamps.has_value();
  options.timestamp_begin = has_timestamps ? *model_.tokens->timestamp_begin() : model_.prompts->vocab_size();
  options.before_window = [this] { return check_limits(); };
  if (silence_.has_value())
    options.is_silent = [this](const FrameRange& window) { return silence_->is_silent(window); };
  return options;
}

// Rows of the joined audio.
StatusOr<std::vector<float>> Run::spoken_rows(int64_t begin, int64_t end) {
  std::vector<float> rows;
  for (const FrameRange& part : spoken_->parts({begin, end})) {
    ASSIGN_OR_RETURN(const std::vector<float> more, windows_->rows(part.begin, part.end));
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

Status Run::run_sequential(std::span<const FrameRange> clips) {
  ClipRunner::Options options = runner_options();
  options.on_segments = [this](std::span<Segment> segments) {
    if (spoken_.has_value()) std::ranges::for_each(segments, [&](Segment& one) { spoken_->restore_times(one); });
    add_segments(segments);
  };
  options.on_seek = [this](int64_t frame) { progress(spoken_.has_value() ? spoken_->file_frame(frame) : frame); };
  const auto features = [this](int64_t begin, int64_t end) -> StatusOr<std::shared_ptr<const EncoderFeatures>> {
    ASSIGN_OR_RETURN(const std::vector<float> rows,
                     spoken_.has_value() ? spoken_rows(begin, end) : windows_->rows(begin, end));
    return windows_->features(rows);
  };
  if (spoken_.has_value()) {
    options.num_frames = spoken_->num_frames();
    clips = spoken_->clips();
  }
  return ClipRunner(*decoder_, features, std::move(options)).run(clips);
}

// What is spoken within the clips, in windows. Clips that are too short to judge are taken whole where no voice is
// found in them.
std::vector<FrameRange> Run::voiced_windows(std::span<const FrameRange> clips) const {
  WindowCutOptions cutting;
  cutting.max_window_seconds = static_cast<double>(kWindowFrames) / kFramesPerSecond;
  std::vector<FrameRange> windows;
  for (const FrameRange& clip : clips) {
    const auto voice =
        windows_->voice().subspan(static_cast<size_t>(clip.begin), static_cast<size_t>(clip.end - clip.begin));
    const size_t num_before = windows.size();
    for (const SpeechSpan& span : cut_windows(find_speech(voice), voice, cutting)) {
      FrameRange window{clip.begin + std::llround(span.start * kFramesPerSecond),
                        clip.begin + std::llround(span.end * kFramesPerSecond)};
      window.end = std::min({window.end, clip.end, window.begin + kWindowFrames});
      if (window.begin < window.end) windows.push_back(window);
    }
    if (windows.size() == num_before && clip.end - clip.begin < kTooShortToJudge) windows.push_back(clip);
  }
  return windows;
}

Status Run::run_window(const FrameRange& window, bool is_first, std::vector<float> rows,
                       std::vector<Segment>& segments) {
  ClipRunner::Options options = runner_options();
  options.begins_audio = is_first;
  options.clips_end_in_pauses = true;
  options.on_segments = [&](std::span<Segment> found) { segments.insert(segments.end(), found.begin(), found.end()); };
  options.on_seek = [](int64_t) {};
  const int64_t width = windows_->row_width();
  const auto features = [&](int64_t begin, int64_t end) -> StatusOr<std::shared_ptr<const EncoderFeatures>> {
    const size_t first = static_cast<size_t>((begin - window.begin) * width);
    return windows_->features(std::span(rows).subspan(first, static_cast<size_t>((end - begin) * width)));
  };
  return ClipRunner(*decoder_, features, std::move(options)).run(std::span(&window, 1));
}

// Windows run on this thread and others, which wait for the engine; rows are cut in order, and results are told in
// order. Where no more threads can be had, those that there are do it. What one of them throws is thrown here.
Status Run::run_batched(std::span<const FrameRange> windows) {
  struct {
    Mutex mutex;
    size_t next ABSL_GUARDED_BY(mutex) = 0, num_told ABSL_GUARDED_BY(mutex) = 0;
    Status failure ABSL_GUARDED_BY(mutex);
    std::exception_ptr exception ABSL_GUARDED_BY(mutex);
    std::map<size_t, std::vector<Segment>> done ABSL_GUARDED_BY(mutex);
  } shared;
  const auto run_windows = [&] {
    for (;;) {
      size_t index = 0;
      std::vector<float> rows;
      {
        const MutexLock lock(shared.mutex);
        if (shared.next == windows.size() || !shared.failure.ok()) return;
        index = shared.next++;
        StatusOr<std::vector<float>> cut = windows_->rows(windows[index].begin, windows[index].end);
        if (!cut.ok()) shared.failure = cut.status();
        if (!cut.ok()) return;
        rows = std::move(cut).value();
      }
      std::vector<Segment> segments;
      const Status ran = run_window(windows[index], index == 0, std::move(rows), segments);
      const MutexLock lock(shared.mutex);
      if (!ran.ok() && shared.failure.ok()) shared.failure = ran;
      shared.done.emplace(index, std::move(segments));
      for (auto first = shared.done.begin();
           shared.failure.ok() && first != shared.done.end() && first->first == shared.num_told; ++shared.num_told) {
        add_segments(first->second);
        progress(windows[shared.num_told].end);
        first = shared.done.erase(first);
      }
    }
  };
  const auto work = [&] {
    try {
      run_windows();
    } catch (const std::exception& exception) {  // no memory, say
      const MutexLock lock(shared.mutex);
      shared.exception = std::current_exception();
      shared.failure.Update(absl::InternalError(exception.what()));
    }
  };
  {
    const size_t num_threads = std::min(windows.size(), static_cast<size_t>(options_.batch_size));
    std::vector<std::jthread> others;  // joined at the end of this block
    others.reserve(num_threads);
    try {
      for (size_t i = 1; i < num_threads; ++i) others.emplace_back(work);
    } catch (const std::system_error& error) {
      log_warning("windows of audio run on ", others.size() + 1, " threads, not ", num_threads, ": ", error.what());
    }
    work();
  }
  const MutexLock lock(shared.mutex);
  if (shared.exception != nullptr) std::rethrow_exception(shared.exception);
  if (shared.failure.ok()) progress(windows_->num_frames());
  return shared.failure;
}

void Run::add_segments(std::span<const Segment> segments) {
  for (const Segment& segment : segments) {
    Segment& added = transcript_.segments.emplace_back(segment);
    added.id = static_cast<int32_t>(transcript_.segments.size()) - 1;
    if (observer_.on_segment) observer_.on_segment(added);
  }
}

void Run::progress(int64_t frame) {
  if (observer_.on_progress) observer_.on_progress(static_cast<double>(frame) / kFramesPerSecond, windows_->seconds());
}

}  // namespace

StatusOr<TranscribeResult> Transcriber::transcribe(const AudioSource& audio, const TranscribeOptions& options,
                                                   const TranscribeObserver& observer,
                                                   const TranscribeLimits& limits) const {
  return Run(model_, options, observer, limits).transcribe(audio);
}

}  // namespace transept
