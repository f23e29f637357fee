#include "speech/subtitle_cues.h"

#include <algorithm>
#include <vector>

#include "base/utf8.h"
#include "speech/characters.h"
#include "speech/timestamp_text.h"

namespace transept {
namespace {

constexpr int64_t kNoLimit = 1000;  // the reference's: lines longer than this are broken all the same
constexpr double kLongPauseSeconds = 3;

// One subtitle: words with the white space that lays them out.
using Subtitle = std::vector<Word>;

// Lays words out one by one; hands over a subtitle when the next word begins another.
class SubtitleLayout final {
 public:
  SubtitleLayout(const SubtitleOptions& options, double first_start, FunctionRef<void(const Subtitle&)> visit)
      : keeps_segments_(options.max_line_count <= 0 || options.max_line_width <= 0),
        max_line_width_(options.max_line_width > 0 ? options.max_line_width : kNoLimit),
        max_line_count_(options.max_line_count),
        last_start_(first_start),
        visit_(visit) {}

  // begins_group: the first of a segment, or of max_words_per_line.
  void add(const Word& timed, bool begins_group) {
    Word word = timed;
    word.word = sanitize_utf8(word.word);
    const bool long_pause = !keeps_segments_ && word.start - last_start_ > kLongPauseSeconds;
    const bool breaks = begins_group && keeps_segments_ && !subtitle_.empty();
    const int64_t length = num_characters(word.word);
    if (line_length_ > 0 && line_length_ + length <= max_line_width_ && !long_pause && !breaks) {
      line_length_ += length;
    } else {
      begin_line(word, long_pause, breaks);
    }
    last_start_ = word.start;
    subtitle_.push_back(std::move(word));
  }

  void finish() {
    if (!subtitle_.empty()) visit_(subtitle_);
    subtitle_.clear();
  }

 private:
  void begin_line(Word& word, bool long_pause, bool breaks) {
    word.word = std::string(strip_space(word.word));
    const int64_t length = num_characters(word.word);
    const bool full = max_line_count_ > 0 && (long_pause || line_count_ >= max_line_count_);
    if ((full && !subtitle_.empty()) || breaks) {
      finish();
      line_count_ = 1;
    } else if (line_length_ > 0) {
      ++line_count_;
      word.word.insert(0, 1, '\n');
    }
    line_length_ = length;
  }

  bool keeps_segments_;
  int64_t max_line_width_, max_line_count_;
  double last_start_;
  FunctionRef<void(const Subtitle&)> visit_;
  Subtitle subtitle_;
  int64_t line_length_ = 0, line_count_ = 1;
};

double first_start(std::span<const Segment> segments) {
  for (const Segment& segment : segments) {
    if (!segment.words.empty()) return segment.words.front().start;
  }
  return segments.empty() ? 0.0 : segments.front().start;
}

void for_each_subtitle(std::span<const Segment> segments, const SubtitleOptions& options,
                       FunctionRef<void(const Subtitle&)> visit) {
  const auto group_size = static_cast<size_t>(options.max_words_per_line > 0 ? options.max_words_per_line : kNoLimit);
  SubtitleLayout layout(options, first_start(segments), visit);
  for (const Segment& segment : segments) {
    for (size_t i = 0; i < segment.words.size(); ++i) layout.add(segment.words[i], i % group_size == 0);
  }
  layout.finish();
}

// The word between <u> and </u>; white space before it, and a line end after it, stay outside. A word that has a line
// end in its middle is left as it is (the reference's pattern does not match it).
std::string underlined(const std::string& word) {
  const size_t begin = leading_space_bytes(word);
  const size_t line_end = word.find('\n', begin);
  if (line_end != std::string::npos && line_end + 1 != word.size()) return word;
  const size_t end = std::min(line_end, word.size());
  return word.substr(0, begin) + "<u>" + word.substr(begin, end - begin) + "</u>" + word.substr(end);
}

std::string text_of(const Subtitle& subtitle, size_t highlighted) {
  std::string text;
  for (size_t i = 0; i < subtitle.size(); ++i) {
    text += i == highlighted ? underlined(subtitle[i].word) : subtitle[i].word;
  }
  return text;
}

// One cue a word, and one without underlining where there is time between two words. Times are compared as they are
// written, to the millisecond.
void highlight(const Subtitle& subtitle, FunctionRef<void(const Cue&)> visit) {
  const auto written = [](double seconds) { return format_timestamp(seconds, /*always_hours=*/true, ','); };
  double last = subtitle.front().start;
  for (size_t i = 0; i < subtitle.size(); ++i) {
    const Word& word = subtitle[i];
    if (written(last) != written(word.start)) visit({last, word.start, text_of(subtitle, subtitle.size())});
    visit({word.start, word.end, text_of(subtitle, i)});
    last = word.end;
  }
}

}  // namespace

void for_each_word_cue(std::span<const Segment> segments, const SubtitleOptions& options,
                       FunctionRef<void(const Cue&)> visit) {
  for_each_subtitle(segments, options, [&](const Subtitle& subtitle) {
    if (options.highlight_words) {
      highlight(subtitle, visit);
    } else {
      visit({subtitle.front().start, subtitle.back().end, text_of(subtitle, subtitle.size())});
    }
  });
}

}  // namespace transept
