#include "speech/clip_runner.h"

#include <algorithm>
#include <utility>

namespace transept {

ClipRunner::ClipRunner(const WindowDecoder& decoder, Features features, Options options)
    : decoder_(decoder),
      features_(std::move(features)),
      options_(std::move(options)),
      previous_(decoder.initial_prompt_ids(), options_.asked->carry_initial_prompt, decoder.max_previous_tokens(),
                decoder.hotword_ids()),
      with_prefix_(options_.begins_audio) {}

Status ClipRunner::run(std::span<const FrameRange> clips) {
  for (const FrameRange& clip : clips) {
    int64_t seek = clip.begin;
    while (seek < clip.end) {
      RETURN_IF_ERROR(options_.before_window());
      const Window window{seek, std::min({kWindowFrames, options_.num_frames - seek, clip.end - seek}), clip};
      const FrameRange frames{seek, seek + window.size};
      if (options_.is_silent && options_.is_silent(frames)) {
        seek = frames.end;
      } else {
        ASSIGN_OR_RETURN(seek, run_window(window));
      }
      options_.on_seek(std::min(seek, options_.num_frames));
    }
  }
  return ok_status();
}

StatusOr<int64_t> ClipRunner::run_window(const Window& window) {
  ASSIGN_OR_RETURN(const auto features, features_(window.seek, window.seek + window.size));
  ASSIGN_OR_RETURN(const EncodedInput encoded, decoder_.encode(features));
  const double seconds = static_cast<double>(window.size) / kFramesPerSecond;
  const bool is_anywhere = options_.asked->reference != SpeechReference::kFasterWhisper || options_.clips_end_in_pauses;
  const bool with_prefix = std::exchange(with_prefix_, false) && (is_anywhere || window.seek == 0);
  ASSIGN_OR_RETURN(const WindowAnswer answer, decoder_.decode(encoded, previous_.prompt(), with_prefix, seconds,
                                                              static_cast<uint64_t>(window.seek)));
  if (is_silence(answer.scores, options_.asked->thresholds)) return window.seek + window.size;
  WindowSegments cut_up = cut(window, answer);
  for (Segment& segment : cut_up.segments) {
    segment.text = decoder_.text(segment.tokens);
    segment.temperature = answer.temperature;
    segment.avg_logprob = answer.scores.avg_logprob;
    segment.compression_ratio = answer.scores.compression_ratio;
    segment.no_speech_prob = answer.scores.no_speech_prob;
  }
  if (options_.asked->word_timestamps) {
    ASSIGN_OR_RETURN(const bool skipped, add_words(window, encoded, cut_up));
    if (skipped) return cut_up.next_seek;
  }
  clear_empty_segments(cut_up.segments);
  for (const Segment& segment : cut_up.segments) previous_.append(segment.tokens);
  constexpr double kTrustedTemperature = 0.5;
  if (!options_.asked->condition_on_previous_text || answer.temperature > kTrustedTemperature) previous_.reset();
  options_.on_segments(cut_up.segments);
  return cut_up.next_seek;
}

WindowSegments ClipRunner::cut(const Window& window, const WindowAnswer& answer) const {
  WindowTokens tokens;
  tokens.tokens = answer.tokens;
  tokens.logprobs = answer.logprobs;
  tokens.seek = window.seek;
  tokens.segment_size = window.size;
  tokens.timestamp_begin = options_.timestamp_begin;
  WindowSegments segments = window_segments(tokens);
  const int64_t end = window.seek + window.size;
  if (!options_.clips_end_in_pauses || end < window.clip.end || segments.next_seek >= end) return segments;
  size_t used = 0;
  for (const Segment& segment : segments.segments) used += segment.tokens.size();
  Segment rest;
  rest.seek = window.seek;
  const auto first = static_cast<std::ptrdiff_t>(std::min(used, answer.tokens.size()));
  rest.tokens.assign(answer.tokens.begin() + first, answer.tokens.end());
  if (!answer.logprobs.empty()) rest.token_logprobs.assign(answer.logprobs.begin() + first, answer.logprobs.end());
  rest.start = static_cast<double>(segments.next_seek) / kFramesPerSecond;
  rest.end = static_cast<double>(end) / kFramesPerSecond;
  if (std::ranges::any_of(rest.tokens, [&](int32_t id) { return decoder_.is_text(id); })) {
    segments.segments.push_back(std::move(rest));
  }
  segments.next_seek = end;
  return segments;
}

// True: what the window says is taken for a hallucination.
StatusOr<bool> ClipRunner::add_words(const Window& window, const EncodedInput& encoded, WindowSegments& segments) {
  std::vector<int32_t> text_tokens;
  for (const Segment& segment : segments.segments) {
    std::ranges::copy_if(segment.tokens, std::back_inserter(text_tokens),
                         [&](int32_t id) { return decoder_.is_text(id); });
  }
  ASSIGN_OR_RETURN(std::vector<WordTiming> alignment, decoder_.align(encoded, text_tokens, window.size));
  WordTimesOptions words;
  words.prepend_punctuations = options_.asked->prepend_punctuations;
  words.append_punctuations = options_.asked->append_punctuations;
  words.end_of_text = decoder_.end_of_text();
  words.last_speech_timestamp = last_speech_timestamp_;
  add_word_times(std::move(alignment), words, segments.segments);
  const std::optional<double>& threshold = options_.asked->hallucination_silence_threshold;
  const int64_t pause_seek = segments.next_seek;
  WindowWords settled{std::move(segments), last_speech_timestamp_, false};
  settle_words({window.seek, window.size, options_.num_frames}, threshold.has_value() ? &*threshold : nullptr, settled);
  segments = std::move(settled.window);
  last_speech_timestamp_ = settled.last_speech_timestamp;
  // A clip that ends in a pause is done with its window; the words do not say otherwise.
  if (options_.clips_end_in_pauses && window.seek + window.size >= window.clip.end && !threshold.has_value()) {
    segments.next_seek = pause_seek;
  }
  return settled.skipped;
}

}  // namespace transept
