// One window of audio to tokens: the prompt, the temperature ladder, the language, the words' times, each a request of
// its own over one encode. Source: openai-whisper, decoding.py and transcribe.py (decode_with_fallback), timing.py.
//
// Made once a transcription. Its const functions are thread-safe and block until the engine has answered, or the
// transcription's limits have ended them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "core/encoder_features.h"
#include "engine/encoded_input.h"
#include "speech/decoding_rules.h"
#include "speech/transcribe_options.h"
#include "speech/transcription.h"
#include "speech/word_alignment.h"

namespace transept {

struct WindowAnswer {
  std::vector<int32_t> tokens;  // without the end token
  int64_t num_generated = 0;    // with it
  WindowScores scores;
  double temperature = 0;
};

class WindowDecoder final {
 public:
  // Errors: what the model, or an engine of this size, cannot serve of the options, by their names.
  static StatusOr<std::unique_ptr<WindowDecoder>> create(const SpeechModel& model, const TranscribeOptions& options,
                                                         const TranscribeLimits& limits);

  StatusOr<EncodedInput> encode(const std::shared_ptr<const EncoderFeatures>& features) const;

  // The language must be known before decode() and align().
  bool needs_language() const { return language_.empty(); }
  // Takes the most probable; all of them, most probable first. A later encode of the same features finds them encoded,
  // those of every call. The last call's language holds.
  // REQUIRES: no concurrent call of another function.
  StatusOr<std::vector<LanguageGuess>> detect_language(const std::shared_ptr<const EncoderFeatures>& features);
  const std::string& language() const { return language_; }

  // `previous`: what follows <|startofprev|>. `window_key` with the seed keys random numbers.
  StatusOr<WindowAnswer> decode(const EncodedInput& window, std::span<const int32_t> previous, bool with_prefix,
                                double seconds, uint64_t window_key) const;

  // When the words of the window's text tokens were spoken. `num_frames` of the window hold audio.
  StatusOr<std::vector<WordTiming>> align(const EncodedInput& window, std::span<const int32_t> text_tokens,
                                          int64_t num_frames) const;

  // Text of a segment's tokens, without timestamps and other specials.
  std::string text(std::span<const int32_t> tokens) const;
  // Of a window's or a whole transcript's: other specials stay, as in the reference (they come where nothing is
  // suppressed, and count as what repeats itself).
  std::string whole_text(std::span<const int32_t> tokens) const;
  bool is_text(int32_t token_id) const { return token_id < end_of_text_; }
  int32_t end_of_text() const { return end_of_text_; }
  std::vector<int32_t> initial_prompt_ids() const { return initial_prompt_; }
  std::vector<int32_t> hotword_ids() const { return hotwords_; }
  int32_t max_previous_tokens() const { return max_len_ / 2 - 1; }

  TranscribeCounts counts() const;
  TranscribeTimes times() const;

 private:
  WindowDecoder(const SpeechModel& model, const TranscribeOptions& options, const TranscribeLimits& limits)
      : model_(model), options_(options), limits_(limits) {}

  Status settle();
  Status settle_tokens();
  Status settle_room();
  Status check_sequences() const;
  Status set_language(const std::string& language);
  StatusOr<std::vector<int32_t>> suppressed_tokens() const;
  std::string text_below(std::span<const int32_t> tokens, int32_t end) const;
  StatusOr<std::vector<int32_t>> encode_text(const std::string& text, std::string_view field) const;
  std::vector<int32_t> start_sequence() const;
  SamplingParams params(double temperature) const;
  StatusOr<WindowAnswer> decode_at(const EncodedInput& window, const std::vector<int32_t>& prompt,
                                   const SamplingParams& params) const;
  StatusOr<RequestOutput> ask(const EncodedInput& window, std::vector<int32_t> prompt,
                              const SamplingParams& params) const;
  StatusOr<RequestStream> add(RequestSpec spec) const;
  StatusOr<RequestOutput> answer_of(RequestSpec spec) const;
  void note_tokens(const RequestOutput& output) const;

  SpeechModel model_;
  TranscribeOptions options_;
  TranscribeLimits limits_;
  std::vector<double> temperatures_;
  std::vector<int32_t> suppressed_, begin_suppressed_, initial_prompt_, hotwords_, prefix_;
  std::string language_;
  std::optional<int32_t> language_token_, task_token_;
  int32_t start_ = 0, end_of_text_ = 0, max_len_ = 0;
  std::vector<EncodedInput> language_inputs_;  // that told the language, or should have; none: it was given
  mutable std::atomic<int64_t> num_windows_{0}, num_requests_{0}, num_fallbacks_{0};
  mutable std::atomic<int64_t> num_prompt_tokens_{0}, num_generated_tokens_{0}, num_encoder_tokens_{0};
  mutable Mutex times_mutex_;
  mutable TranscribeTimes times_ ABSL_GUARDED_BY(times_mutex_);
  mutable Mutex admission_mutex_;
  mutable bool was_admitted_ ABSL_GUARDED_BY(admission_mutex_) = false;  // the engine has taken a request
};

}  // namespace transept
