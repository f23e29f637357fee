#include "speech/subtitles.h"

#include <algorithm>

#include "base/utf8.h"
#include "speech/characters.h"
#include "speech/subtitle_cues.h"
#include "speech/timestamp_text.h"

namespace transept {
namespace {

std::string stripped(const Segment& segment) { return std::string(strip_space(sanitize_utf8(segment.text))); }

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (size_t i = text.find(what); i != std::string::npos; i = text.find(what, i + with.size())) {
    text.replace(i, what.size(), with);
  }
}

std::string write_txt(const Transcript& transcript) {
  std::string out;
  for (const Segment& segment : transcript.segments) out += stripped(segment) + "\n";
  return out;
}

std::string write_tsv(const Transcript& transcript) {
  std::string out = "start\tend\ttext\n";
  for (const Segment& segment : transcript.segments) {
    std::string text = stripped(segment);
    std::replace(text.begin(), text.end(), '\t', ' ');
    out += str_cat(milliseconds(segment.start), "\t", milliseconds(segment.end), "\t", text, "\n");
  }
  return out;
}

void for_each_cue(const Transcript& transcript, const SubtitleOptions& options, FunctionRef<void(const Cue&)> visit) {
  if (transcript.has_words) {
    for_each_word_cue(transcript.segments, options, visit);
    return;
  }
  for (const Segment& segment : transcript.segments) {
    std::string text = stripped(segment);
    replace_all(text, "-->", "->");
    visit({segment.start, segment.end, text});
  }
}

std::string write_vtt(const Transcript& transcript, const SubtitleOptions& options) {
  std::string out = "WEBVTT\n\n";
  for_each_cue(transcript, options, [&](const Cue& cue) {
    out += str_cat(format_timestamp(cue.start, /*always_hours=*/false, '.'), " --> ",
                   format_timestamp(cue.end, /*always_hours=*/false, '.'), "\n", cue.text, "\n\n");
  });
  return out;
}

std::string write_srt(const Transcript& transcript, const SubtitleOptions& options) {
  std::string out;
  int64_t number = 0;
  for_each_cue(transcript, options, [&](const Cue& cue) {
    out += str_cat(++number, "\n", format_timestamp(cue.start, /*always_hours=*/true, ','), " --> ",
                   format_timestamp(cue.end, /*always_hours=*/true, ','), "\n", cue.text, "\n\n");
  });
  return out;
}

}  // namespace

std::string_view transcript_extension(TranscriptFormat format) {
  switch (format) {
    case TranscriptFormat::kTxt: return "txt";
    case TranscriptFormat::kVtt: return "vtt";
    case TranscriptFormat::kSrt: return "srt";
    case TranscriptFormat::kTsv: return "tsv";
    case TranscriptFormat::kJson: return "json";
  }
  return "";
}

StatusOr<std::vector<std::string>> check_subtitle_options(const SubtitleOptions& options, bool word_times) {
  struct Limit {
    const char* name;
    int64_t value;
  };
  for (const Limit limit :
       {Limit{"max_line_width", options.max_line_width}, Limit{"max_line_count", options.max_line_count},
        Limit{"max_words_per_line", options.max_words_per_line}}) {
    if (limit.value < 0) return field_error(limit.name, str_cat(limit.value, " is negative"));
    if (limit.value > 0 && !word_times) return field_error(limit.name, "needs word timestamps");
  }
  if (options.highlight_words && !word_times) return field_error("highlight_words", "needs word timestamps");
  std::vector<std::string> warnings;
  if (options.max_line_count > 0 && options.max_line_width == 0) {
    warnings.emplace_back("max_line_count has no effect without max_line_width");
  }
  // The reference warns of max_line_width alone, beside which it does as it is told.
  if (options.max_words_per_line > 0 && options.max_line_width > 0 && options.max_line_count > 0) {
    warnings.emplace_back("max_words_per_line has no effect with max_line_width and max_line_count");
  }
  return warnings;
}

std::string write_transcript(const Transcript& transcript, TranscriptFormat format, const SubtitleOptions& options) {
  switch (format) {
    case TranscriptFormat::kTxt: return write_txt(transcript);
    case TranscriptFormat::kVtt: return write_vtt(transcript, options);
    case TranscriptFormat::kSrt: return write_srt(transcript, options);
    case TranscriptFormat::kTsv: return write_tsv(transcript);
    case TranscriptFormat::kJson: return transcript_json(transcript).dump();
  }
  return "";
}

Json word_json(const Word& word) {
  return Json(
      Json::Object{{"word", word.word}, {"start", word.start}, {"end", word.end}, {"probability", word.probability}});
}

Json segment_json(const Segment& segment, bool has_words) {
  Json::Array tokens;
  tokens.reserve(segment.tokens.size());
  for (const int32_t token : segment.tokens) tokens.emplace_back(token);
  Json json(Json::Object{{"id", segment.id},
                         {"seek", segment.seek},
                         {"start", segment.start},
                         {"end", segment.end},
                         {"text", segment.text},
                         {"tokens", std::move(tokens)},
                         {"temperature", segment.temperature},
                         {"avg_logprob", segment.avg_logprob},
                         {"compression_ratio", segment.compression_ratio},
                         {"no_speech_prob", segment.no_speech_prob}});
  if (has_words) {
    Json::Array words;
    words.reserve(segment.words.size());
    for (const Word& word : segment.words) words.push_back(word_json(word));
    json.set("words", std::move(words));
  }
  return json;
}

Json transcript_json(const Transcript& transcript) {
  Json::Array segments;
  segments.reserve(transcript.segments.size());
  for (const Segment& segment : transcript.segments) segments.push_back(segment_json(segment, transcript.has_words));
  return Json(
      Json::Object{{"text", transcript.text}, {"segments", std::move(segments)}, {"language", transcript.language}});
}

std::string segment_line(const Segment& segment) {
  return str_cat("[", format_timestamp(segment.start, /*always_hours=*/false, '.'), " --> ",
                 format_timestamp(segment.end, /*always_hours=*/false, '.'), "] ", sanitize_utf8(segment.text));
}

}  // namespace transept
