// Transcripts of transept.h.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "capi/audio_argument.h"
#include "capi/border.h"
#include "capi/callback_scope.h"
#include "capi/handles.h"
#include "capi/new_request.h"
#include "capi/option_table.h"
#include "capi/speech_options.h"

namespace transept {
namespace {

constexpr size_t kTranscribeOptionsV1 = offsetof(transept_transcribe_options, on_duration);
constexpr size_t kSegmentV1 = sizeof(transept_segment);

StatusOr<TranscribeOptions> options_of(const transept_transcribe_options& given) {
  ASSIGN_OR_RETURN(const std::string_view json, read_text(given.options_json, "options_json"));
  ASSIGN_OR_RETURN(const std::string_view language, read_text(given.language, "language"));
  ASSIGN_OR_RETURN(const std::string_view task, read_text(given.task, "task"));
  ASSIGN_OR_RETURN(Json options, parse_options(json, "options_json"));
  if (!language.empty()) options.set("language", language);
  if (!task.empty()) options.set("task", task);
  return transcribe_options_of(options);
}

std::vector<transept_word> words_of(const Segment& segment) {
  std::vector<transept_word> words;
  words.reserve(segment.words.size());
  for (const Word& word : segment.words) {
    words.push_back({as_text(word.word), word.start, word.end, word.probability});
  }
  return words;
}

transept_segment segment_of(const Segment& segment, std::span<const transept_word> words) {
  transept_segment out{};
  out.struct_size = sizeof out;
  out.text = as_text(segment.text);
  out.start = segment.start;
  out.end = segment.end;
  out.token_ids = segment.tokens.data();
  out.num_token_ids = segment.tokens.size();
  out.words = words.data();
  out.num_words = words.size();
  out.temperature = segment.temperature;
  out.avg_logprob = segment.avg_logprob;
  out.compression_ratio = segment.compression_ratio;
  out.no_speech_prob = segment.no_speech_prob;
  out.id = segment.id;
  out.seek = static_cast<int32_t>(std::min<int64_t>(segment.seek, INT32_MAX));
  return out;
}

std::vector<transept_language> languages_of(const std::vector<LanguageGuess>& guesses) {
  std::vector<transept_language> languages;
  languages.reserve(guesses.size());
  for (const LanguageGuess& guess : guesses) languages.push_back({as_text(guess.code), guess.probability});
  return languages;
}

// What ends a transcription early.
struct Stop {
  std::stop_source source = {};
  std::atomic<bool> by_callback = false;
};

// The caller's callbacks; one that does not return 0 stops.
TranscribeObserver observer_of(const transept_transcribe_options& given, Stop& stop) {
  const auto call = [&stop](auto callback, auto... arguments) {
    const CallbackScope scope(Inside::kCallback);
    if (callback(arguments...) == 0) return;
    stop.by_callback = true;
    stop.source.request_stop();
  };
  TranscribeObserver observer;
  if (given.on_segment != nullptr) {
    observer.on_segment = [&given, call](const Segment& segment) {
      const std::vector<transept_word> words = words_of(segment);
      const transept_segment shown = segment_of(segment, words);
      call(given.on_segment, given.data, &shown);
    };
  }
  if (given.on_progress != nullptr) {
    observer.on_progress = [&given, call](double done, double all) { call(given.on_progress, given.data, done, all); };
  }
  if (given.on_duration != nullptr) {
    observer.on_duration = [&given, call](double seconds) { call(given.on_duration, given.data, seconds); };
  }
  if (given.on_language != nullptr || given.on_languages != nullptr) {
    observer.on_language = [&given, call](const std::vector<LanguageGuess>& guesses) {
      if (guesses.empty()) return;
      const LanguageGuess& best = guesses.front();
      if (given.on_language != nullptr) call(given.on_language, given.data, as_text(best.code), best.probability);
      const std::vector<transept_language> all = languages_of(guesses);
      if (given.on_languages != nullptr) call(given.on_languages, given.data, all.data(), all.size());
    };
  }
  return observer;
}

StatusOr<std::unique_ptr<transept_transcript>> transcribe(const SharedModel& model, const transept_audio& audio,
                                                          const transept_transcribe_options& given) {
  RETURN_IF_ERROR(model.speech().status());
  ASSIGN_OR_RETURN(const TranscribeOptions options, options_of(given));
  ASSIGN_OR_RETURN(const Duration timeout, read_seconds(given.timeout_seconds, "timeout_seconds"));
  ASSIGN_OR_RETURN(const AudioSource source, audio_source(audio));
  Stop stop;
  const std::stop_token token =
      given.cancellation == nullptr ? std::stop_token() : given.cancellation->source.get_token();
  const std::stop_callback on_cancel(token, [&stop] { stop.source.request_stop(); });
  TranscribeLimits limits{.stop_token = stop.source.get_token()};
  if (timeout > Duration::zero()) limits.deadline = model.clock().now() + timeout;
  ASSIGN_OR_RETURN(TranscribeResult result,
                   Transcriber(*model.speech()).transcribe(source, options, observer_of(given, stop), limits));
  if (stop.by_callback) return absl::CancelledError("a callback ended the transcription");  // with its last news
  auto handle = std::make_unique<transept_transcript>();
  handle->transcript = std::move(result.transcript);
  for (const Segment& segment : handle->transcript.segments) handle->words.push_back(words_of(segment));
  return handle;
}

}  // namespace
}  // namespace transept

using namespace transept;  // NOLINT: the functions below are C's

transept_code transept_transcribe(transept_model* model, const transept_audio* audio,
                                  const transept_transcribe_options* options, transept_transcript** transcript,
                                  transept_error** error) {
  if (transcript != nullptr) *transcript = nullptr;
  return at_border(error, [&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<SharedModel> shared, model_of(model));
    RETURN_IF_ERROR(require(transcript, "transcript"));
    RETURN_IF_ERROR(CallbackScope::check_may_wait());
    ASSIGN_OR_RETURN(const transept_audio read_audio, read_audio_struct(audio));
    transept_transcribe_options given{};
    if (options != nullptr) {
      ASSIGN_OR_RETURN(given, read_struct(options, kTranscribeOptionsV1, "options"));
    }
    const SharedModel::Call call(shared);
    ASSIGN_OR_RETURN(std::unique_ptr<transept_transcript> handle, transcribe(*shared, read_audio, given));
    *transcript = handle.release();
    return ok_status();
  });
}

transept_text transept_transcript_text(const transept_transcript* transcript) {
  return transcript == nullptr ? transept_text{"", 0} : as_text(transcript->transcript.text);
}

transept_text transept_transcript_language(const transept_transcript* transcript) {
  return transcript == nullptr ? transept_text{"", 0} : as_text(transcript->transcript.language);
}

double transept_transcript_duration(const transept_transcript* transcript) {
  return transcript == nullptr ? 0 : transcript->transcript.duration;
}

size_t transept_transcript_num_segments(const transept_transcript* transcript) {
  return transcript == nullptr ? 0 : transcript->transcript.segments.size();
}

transept_code transept_transcript_get_segment(const transept_transcript* transcript, size_t index,
                                              transept_segment* segment, transept_error** error) {
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(transcript, "transcript"));
    const std::vector<Segment>& segments = transcript->transcript.segments;
    if (index >= segments.size()) {
      return field_error("index",
                         str_cat("index is ", index, ", and the transcript has ", segments.size(), " segments"));
    }
    return write_struct(segment_of(segments[index], transcript->words[index]), kSegmentV1, segment, "segment");
  });
}

transept_code transept_transcript_write(const transept_transcript* transcript, const char* format,
                                        transept_text options_json, char** text, size_t* size, transept_error** error) {
  if (text != nullptr) *text = nullptr;
  if (size != nullptr) *size = 0;
  return at_border(error, [&]() -> Status {
    RETURN_IF_ERROR(require(transcript, "transcript"));
    RETURN_IF_ERROR(require(format, "format"));
    RETURN_IF_ERROR(require(text, "text"));
    ASSIGN_OR_RETURN(const std::string_view json, read_text(options_json, "options_json"));
    ASSIGN_OR_RETURN(const Json object, parse_options(json, "options_json"));
    ASSIGN_OR_RETURN(const SubtitleOptions options, subtitle_options_of(object));
    ASSIGN_OR_RETURN(const TranscriptFormat chosen, transcript_format_of(format));
    RETURN_IF_ERROR(check_subtitle_options(options, transcript->transcript.has_words).status());
    const std::string written = write_transcript(transcript->transcript, chosen, options);
    *text = copy_text(written);
    if (size != nullptr) *size = written.size();
    return ok_status();
  });
}

void transept_transcript_free(transept_transcript* transcript) { delete transcript; }
