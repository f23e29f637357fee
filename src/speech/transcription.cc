#include "speech/transcription.h"

namespace transept {

StatusOr<SpeechModel> SpeechModel::of(const LoadedModel& model, AsyncEngine& engine) {
  if (model.media->audio() == nullptr) {
    return unimplemented(
        model.config.model, ": a ", model.model_config.model_type,
        " model does not take audio; text is for `transept translate`, `transept generate` and POST /v1/completions");
  }
  if (model.tokenizer == nullptr) {
    return invalid_argument(model.config.model, ": a transcript needs the model's tokenizer, and the folder has none");
  }
  SpeechModel speech;
  speech.engine = &engine;
  speech.tokenizer = model.tokenizer.get();
  speech.audio = model.media->audio();
  speech.tokens = model.speech_tokens.get();
  speech.generation = &model.generation;
  speech.prompts = model.prompts.get();
  speech.has_alignment_heads = !model.info.spec.alignment_heads.empty();
  speech.max_num_seqs = model.config.max_num_seqs;
  return speech;
}

StatusOr<std::unique_ptr<AudioReader>> AudioSource::open(const AudioReader::Options& options) const {
  if (samples_.has_value()) return AudioReader::from_samples(*samples_, options);
  return AudioReader::open(bytes_, options);
}

TranscribeCounts& TranscribeCounts::operator+=(const TranscribeCounts& other) {
  num_windows += other.num_windows;
  num_requests += other.num_requests;
  num_fallbacks += other.num_fallbacks;
  num_prompt_tokens += other.num_prompt_tokens;
  num_generated_tokens += other.num_generated_tokens;
  num_encoder_tokens += other.num_encoder_tokens;
  return *this;
}

Status TranscribeLimits::check(const Clock& clock) const {
  if (stop_token.stop_requested()) return absl::CancelledError("the transcription was cancelled");
  if (deadline.has_value() && *deadline <= clock.now()) {
    return absl::DeadlineExceededError("the transcription was not finished before its deadline");
  }
  return ok_status();
}

}  // namespace transept
