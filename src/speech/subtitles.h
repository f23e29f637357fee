// A transcript as txt, vtt, srt, tsv or json, byte for byte as openai-whisper's utils.py writes the first four; of the
// JSON values and order of keys are openai-whisper's. Pure functions: thread-safe.
//
// Texts are taken for UTF-8 (other bytes count as U+FFFD). Times that are negative or no number are written as 0.
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

// "txt", "vtt", ...: the format's name and the file's extension.
std::string_view transcript_extension(TranscriptFormat format);

// Errors, by the flag's name with underscores: a negative number; an option that needs word times, without them.
// Otherwise what is to be told the user: options that have no effect beside others, as openai-whisper warns of them.
StatusOr<std::vector<std::string>> check_subtitle_options(const SubtitleOptions& options, bool word_times);

// `options` matter to vtt and srt alone.
std::string write_transcript(const Transcript& transcript, TranscriptFormat format,
                             const SubtitleOptions& options = SubtitleOptions());

// {"text", "segments": [{"id", ..., "words": [...]}], "language"}. "words" is there if transcript.has_words.
Json transcript_json(const Transcript& transcript);
Json segment_json(const Segment& segment, bool has_words);
Json word_json(const Word& word);

// "[00:00.000 --> 00:02.500]  text": what openai-whisper prints of a segment while it works.
std::string segment_line(const Segment& segment);

}  // namespace transept
