#include "capi/speech_options.h"

#include <cstdint>
#include <limits>

#include "base/quoted.h"
#include "capi/option_table.h"

namespace transept {
namespace {

constexpr double kMostSeed = 9e18;
constexpr double kMostCharacters = static_cast<double>(int64_t{1} << 40);

// With what is read as a word.
struct Speech {
  TranscribeOptions options;
  std::string mode = "auto";
  std::string reference = "openai-whisper";
};

template <auto member>
OptionSlot slot(Speech& speech) {
  return &(speech.options.*member);
}
template <auto member>
OptionSlot threshold(Speech& speech) {
  return &(speech.options.thresholds.*member);
}
template <auto member>
OptionSlot subtitle(SubtitleOptions& options) {
  return &(options.*member);
}

using O = TranscribeOptions;
using T = DecodingThresholds;
constexpr OptionRow<Speech> kRows[] = {
    {"append_punctuations", slot<&O::append_punctuations>},
    {"batch_size", slot<&O::batch_size>},
    {"beam_size", slot<&O::beam_size>},
    {"best_of", slot<&O::best_of>},
    {"carry_initial_prompt", slot<&O::carry_initial_prompt>},
    {"clip_timestamps", slot<&O::clip_timestamps>},
    {"compression_ratio_threshold", threshold<&T::compression_ratio>},
    {"condition_on_previous_text", slot<&O::condition_on_previous_text>},
    {"hallucination_silence_threshold", slot<&O::hallucination_silence_threshold>},
    {"hotwords", slot<&O::hotwords>},
    {"initial_prompt", slot<&O::initial_prompt>},
    {"language", slot<&O::language>},
    {"length_penalty", slot<&O::length_penalty>},
    {"logprob_threshold", threshold<&T::logprob>},
    {"max_audio_seconds", slot<&O::max_audio_seconds>},
    {"mode", [](Speech& speech) -> OptionSlot { return &speech.mode; }},
    {"no_speech_threshold", threshold<&T::no_speech>},
    {"patience", slot<&O::patience>},
    {"prefix", slot<&O::prefix>},
    {"prepend_punctuations", slot<&O::prepend_punctuations>},
    {"reference", [](Speech& speech) -> OptionSlot { return &speech.reference; }},
    {"seed", slot<&O::seed>, 0, kMostSeed},
    {"skip_silence", slot<&O::skip_silence>},
    {"suppress_tokens", slot<&O::suppress_tokens>},
    {"sure_language", slot<&O::sure_language>},
    {"task", slot<&O::task>},
    {"temperature", slot<&O::temperature>},
    {"temperature_increment_on_fallback", slot<&O::temperature_increment>},
    {"vad_filter", slot<&O::vad_filter>},
    {"without_timestamps", slot<&O::without_timestamps>},
    {"word_timestamps", slot<&O::word_timestamps>},
};

using S = SubtitleOptions;
constexpr OptionRow<SubtitleOptions> kSubtitleRows[] = {
    {"highlight_words", subtitle<&S::highlight_words>},
    {"max_line_count", subtitle<&S::max_line_count>, 0, kMostCharacters},
    {"max_line_width", subtitle<&S::max_line_width>, 0, kMostCharacters},
    {"max_words_per_line", subtitle<&S::max_words_per_line>, 0, kMostCharacters},
};

}  // namespace

StatusOr<TranscribeOptions> transcribe_options_of(const Json& options) {
  Speech speech;
  RETURN_IF_ERROR(read_options(options, kRows, "a transcription", speech));
  if (speech.mode == "sequential") speech.options.mode = TranscribeMode::kSequential;
  if (speech.mode == "batched") speech.options.mode = TranscribeMode::kBatched;
  if (speech.mode != "auto" && !speech.options.mode.has_value()) {
    return field_error("mode",
                       str_cat("mode ", in_quotes(speech.mode), " is unknown; one of auto, sequential, batched"));
  }
  if (speech.reference == "faster-whisper") speech.options.reference = SpeechReference::kFasterWhisper;
  if (speech.reference != "faster-whisper" && speech.reference != "openai-whisper") {
    return field_error("reference", str_cat("reference ", in_quotes(speech.reference),
                                            " is unknown; one of openai-whisper, faster-whisper"));
  }
  RETURN_IF_ERROR(check_transcribe_options(speech.options));
  return speech.options;
}

StatusOr<SubtitleOptions> subtitle_options_of(const Json& options) {
  SubtitleOptions subtitles;
  RETURN_IF_ERROR(read_options(options, kSubtitleRows, "subtitles", subtitles));
  return subtitles;
}

StatusOr<TranscriptFormat> transcript_format_of(std::string_view name) {
  for (const TranscriptFormat format : kTranscriptFormats) {
    if (name == transcript_extension(format)) return format;
  }
  return field_error("format", str_cat("format ", in_quotes(name), " is unknown; one of txt, vtt, srt, tsv, json"));
}

}  // namespace transept
