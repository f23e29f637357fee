// Decodes one window of audio to tokens: prompt, temperature ladder, language and times of words, each by a request of
// its own over one encode. Source: openai-whisper, decoding.py, transcribe.py (decode_with_fallback), timing.py.
//
// One per transcription, which owns it. Copies its arguments, borrows what the SpeechModel points to. Const functions
// are thread-safe. encode, detect_language, decode and align block until the engine answers. Their errors: the
// engine's, under the names of TranscribeOptions; kCancelled and kDeadlineExceeded of the limits.
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
  std::vector<int32_t> tokens;  // without end token and what follows it
  std::vector<float> logprobs;  // of these, with TranscribeOptions::token_logprobs
  int64_t num_generated = 0;    // end token included
  WindowScores scores;
  double temperature = 0;
};

class WindowDecoder final {
 public:
  // Errors: kInvalidArgument with the option as param, if the model or an engine of this size cannot serve it
  // ("max_model_len": too few positions for a window or a transcript); without param, if the model's files name no end
  // token.
  static StatusOr<std::unique_ptr<WindowDecoder>> create(const SpeechModel& model, const TranscribeOptions& options,
                                                         const TranscribeLimits& limits);

  // Encodes a window. Reuses the encodes of detect_language() by digest.
  StatusOr<EncodedInput> encode(const std::shared_ptr<const EncoderFeatures>& features) const;

  // True until the language is known. decode() and align() require it.
  bool needs_language() const { return language_.empty(); }
  // Detects the language from one window and sets the most probable one. Returns all guesses, most probable first.
  // Keeps the encode for encode(). A later call replaces the language. REQUIRES: a model with transcript tokens; no
  // concurrent call of another function.
  StatusOr<std::vector<LanguageGuess>> detect_language(const std::shared_ptr<const EncoderFeatures>& features);
  const std::string& language() const { return language_; }
  // Errors: kInvalidArgument with param "language". REQUIRES: as detect_language.
  Status set_language(const std::string& language);

  // Decodes a window, at rising temperatures until an answer passes the thresholds; returns the last one. `previous`:
  // tokens after <|startofprev|>. `with_prefix`: the prompt ends with options.prefix, and the answer's tokens begin
  // with it, with log-probabilities of 0; lengths and the compression ratio count it. `seconds`: audio in the window,
  // which bounds the answer of models without transcript tokens. `window_key` and the seed determine the random
  // numbers.
  StatusOr<WindowAnswer> decode(const EncodedInput& window, std::span<const int32_t> previous, bool with_prefix,
                                double seconds, uint64_t window_key) const;

  // ---- For callers that do not wait: requests over the features themselves, to be added to the engine, and what their
  // answers say. Greedy, at temperature 0, without fallback; counts() and times() do not know them.
  RequestSpec language_request(const std::shared_ptr<const EncoderFeatures>& features) const;
  // Most probable first. Errors: kInternal: no language is among the answers.
  StatusOr<std::vector<LanguageGuess>> language_guesses(const RequestOutput& output) const;
  // As decode(). `draft`: tokens that are expected. REQUIRES: options.beam_size is 1, and a known language.
  RequestSpec attempt_request(const std::shared_ptr<const EncoderFeatures>& features, std::span<const int32_t> previous,
                              double seconds, std::vector<int32_t> draft) const;
  StatusOr<WindowAnswer> attempt_answer(const RequestOutput& output) const;

  // Returns the times of the words of `text_tokens`, in seconds from the beginning of the window; none for no tokens.
  // `num_frames` of the window hold audio. REQUIRES: options.word_timestamps.
  StatusOr<std::vector<WordTiming>> align(const EncodedInput& window, std::span<const int32_t> text_tokens,
                                          int64_t num_frames) const;

  // Returns the text of a segment's tokens, without timestamps and other special tokens.
  std::string text(std::span<const int32_t> tokens) const;
  // Returns the text of a window or a whole transcript, without timestamps. Other special tokens stay, as in the
  // reference; they occur if nothing is suppressed, and count for the compression ratio.
  std::string whole_text(std::span<const int32_t> tokens) const;
  // For each token, the bytes of whole_text(tokens) behind it; timestamps add none. Bytes that are no UTF-8 count as
  // they are, though the text has replacements for them.
  std::vector<size_t> text_ends(std::span<const int32_t> tokens) const;
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
  Status settle_languages();
  StatusOr<std::vector<int32_t>> suppressed_tokens() const;
  int32_t end_of_whole_text() const;
  std::string text_below(std::span<const int32_t> tokens, int32_t end) const;
  StatusOr<std::vector<int32_t>> encode_text(const std::string& text, std::string_view field) const;
  std::vector<int32_t> start_sequence(bool timestamps) const;
  struct Prompt {
    std::vector<int32_t> ids;
    int32_t start_index = 0;  // of the start token
    int32_t num_given = 0;    // the last so many are the prefix
  };
  Prompt make_prompt(std::span<const int32_t> previous, bool with_prefix) const;
  EncoderDecoderInputs make_inputs(const std::shared_ptr<const EncoderFeatures>& features) const;
  SamplingParams language_params() const;
  SamplingParams params(double temperature) const;
  SamplingParams params_of(const Prompt& prompt, double temperature, double seconds) const;
  static std::vector<float> logprobs_of(const CompletionOutput& answer, size_t num_tokens);
  // `given`: the prompt's part that the answer begins with.
  StatusOr<WindowAnswer> read_answer(const RequestOutput& output, const SamplingParams& params,
                                     std::span<const int32_t> given) const;
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
  std::vector<int32_t> suppressed_, begin_suppressed_, initial_prompt_, hotwords_;
  std::vector<int32_t> prefix_;  // with timestamps <|0.00|> first
  std::string language_;
  std::optional<int32_t> language_token_, task_token_;
  int32_t start_ = 0, end_of_text_ = 0, max_len_ = 0;
  std::vector<int32_t> language_ids_;          // that detection chooses among, ascending
  std::vector<EncodedInput> language_inputs_;  // of detect_language()
  mutable std::atomic<int64_t> num_windows_{0}, num_requests_{0}, num_fallbacks_{0};
  mutable std::atomic<int64_t> num_prompt_tokens_{0}, num_generated_tokens_{0}, num_encoder_tokens_{0};
  mutable Mutex times_mutex_;
  mutable TranscribeTimes times_ ABSL_GUARDED_BY(times_mutex_);
  mutable Mutex admission_mutex_;
  mutable bool was_admitted_ ABSL_GUARDED_BY(admission_mutex_) = limits_.is_admitted;  // the engine has admitted one
};

}  // namespace transept
