// Writes a transcript as txt, vtt, srt, tsv or json. The first four are byte for byte those of openai-whisper's
// utils.py; json has its values and its order of keys. Pure functions: thread-safe.
//
// Invalid UTF-8 becomes U+FFFD. Times that are negative or NaN are written as 0, but in json as they are (NaN: null).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "speech/subtitle_cues.h"
#include "speech/transcript.h"

namespace transept {

enum class TranscriptFormat : uint8_t { kTxt, kVtt, kSrt, kTsv, kJson };

// The order in which openai-whisper writes them for "all".
inline constexpr std::array<TranscriptFormat, 5> kTranscriptFormats = {TranscriptFormat::kTxt, TranscriptFormat::kVtt,
                                                                       TranscriptFormat::kSrt, TranscriptFormat::kTsv,
                                                                       TranscriptFormat::kJson};

// Returns "txt", "vtt", ...: the name of the format and the extension of its file.
std::string_view transcript_extension(TranscriptFormat format);

// Checks the options. Returns openai-whisper's warnings about options without effect. Errors: kInvalidArgument with the
// flag's name in underscores as param: a negative number; an option that needs word times, without `word_times`.
StatusOr<std::vector<std::string>> check_subtitle_options(const SubtitleOptions& options, bool word_times);

// `options` apply to vtt and srt with word times.
std::string write_transcript(const Transcript& transcript, TranscriptFormat format,
                             const SubtitleOptions& options = SubtitleOptions());

// Returns {"text", "segments": [{"id", ..., "words": [...]}], "language"}; "words" only with transcript.has_words.
Json transcript_json(const Transcript& transcript);
Json segment_json(const Segment& segment, bool has_words);
Json word_json(const Word& word);

// Returns "[00:00.000 --> 00:02.500]  text", as openai-whisper prints segments while it works.
std::string segment_line(const Segment& segment);

}  // namespace transept
