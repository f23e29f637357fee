#include "speech/live_final.h"

#include <exception>
#include <utility>

namespace transept {

void LiveFinal::run(const SpeechModel& model) {
  LiveFinalAnswer answer = transcribe(model);
  audio_ = AudioBytes();
  const MutexLock lock(mutex_);
  answer_ = std::move(answer);
}

LiveFinalAnswer LiveFinal::transcribe(const SpeechModel& model) {
  std::vector<LanguageGuess> languages;
  TranscribeObserver observer;
  observer.on_language = [&](const std::vector<LanguageGuess>& guesses) { languages = guesses; };
  TranscribeLimits limits;
  limits.stop_token = stop_.get_token();
  limits.is_admitted = true;
  limits.priority = kLiveFinalPriority;
  try {
    auto result = Transcriber(model).transcribe(AudioSource(audio_), options_, observer, limits);
    return {std::move(result), std::move(languages)};
  } catch (const std::exception& exception) {  // no memory, say
    return {absl::InternalError(str_cat("the transcription was given up: ", exception.what())), {}};
  }
}

std::optional<LiveFinalAnswer> LiveFinal::take_answer() {
  const MutexLock lock(mutex_);
  return std::exchange(answer_, std::nullopt);
}

}  // namespace transept
