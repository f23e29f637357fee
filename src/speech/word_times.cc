#include "speech/word_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "speech/characters.h"
#include "speech/window_segments.h"

namespace transept {
namespace {

constexpr std::string_view kSentenceEnds = ".。!！?？";
constexpr double kLongestMedianSeconds = 0.7;

// As the reference asks it: part of the list, so "" is in every list, and "?!" in none that does not hold it.
bool is_in(std::string_view word, std::string_view list) { return list.find(word) != std::string_view::npos; }

// To 0.01 s as numpy rounds: half to even of the hundredfold.
double rounded(double seconds) { return std::nearbyint(seconds * 100) / 100; }

// Of the words that last at all, at most 0.7 s; 0 if there are none.
double median_duration(const std::vector<WordTiming>& alignment) {
  std::vector<double> durations;
  for (const WordTiming& word : alignment) {
    if (word.end - word.start != 0) durations.push_back(word.end - word.start);
  }
  if (durations.empty()) return 0;
  std::sort(durations.begin(), durations.end());
  const size_t middle = durations.size() / 2;
  const double median = durations.size() % 2 == 1 ? durations[middle] : (durations[middle - 1] + durations[middle]) / 2;
  return std::min(kLongestMedianSeconds, median);
}

// The pause at the end of a sentence belongs to no word.
void shorten_at_sentence_ends(double longest, std::vector<WordTiming>& alignment) {
  for (size_t i = 1; i < alignment.size(); ++i) {
    WordTiming& word = alignment[i];
    if (word.end - word.start <= longest) continue;
    if (is_in(word.word, kSentenceEnds)) {
      word.end = word.start + longest;
    } else if (is_in(alignment[i - 1].word, kSentenceEnds)) {
      word.start = word.end - longest;
    }
  }
}

// After a pause the first two words last at most twice the median each: the pause belongs to neither.
void shorten_after_pause(double median, double last_speech, std::vector<Word>& words) {
  const double longest = 2 * median;
  Word& first = words.front();
  const bool after_pause = first.end - last_speech > median * 4;
  const bool long_first = first.end - first.start > longest;
  const bool long_pair = words.size() > 1 && words[1].end - first.start > longest * 2;
  if (!after_pause || (!long_first && !long_pair)) return;
  if (words.size() > 1 && words[1].end - words[1].start > longest) {
    const double boundary = std::max(words[1].end / 2, words[1].end - longest);
    first.end = words[1].start = boundary;
  }
  first.start = std::max(0.0, first.end - longest);
}

// The segment's own times hold where its first or last word lies far outside; otherwise the words' times do.
void settle_borders(double median, Segment& segment) {
  Word& first = segment.words.front();
  if (segment.start < first.end && segment.start - 0.5 > first.start) {
    first.start = std::max(0.0, std::min(first.end - median, segment.start));
  } else {
    segment.start = first.start;
  }
  Word& last = segment.words.back();
  if (segment.end > last.start && segment.end + 0.5 < last.end) {
    last.end = std::max(last.start + median, segment.end);
  } else {
    segment.end = last.end;
  }
}

}  // namespace

void merge_punctuations(std::vector<WordTiming>& alignment, std::string_view prepended, std::string_view appended) {
  const auto move_before = [](WordTiming& from, WordTiming& to) {
    to.word.insert(0, from.word);
    to.tokens.insert(to.tokens.begin(), from.tokens.begin(), from.tokens.end());
  };
  const auto empty = [](WordTiming& word) {
    word.word.clear();
    word.tokens.clear();
  };
  size_t following = alignment.size();
  for (size_t i = alignment.size(); i-- > 0;) {
    WordTiming& word = alignment[i];
    if (following < alignment.size() && word.word.starts_with(' ') && is_in(strip_space(word.word), prepended)) {
      move_before(word, alignment[following]);
      empty(word);
    } else {
      following = i;
    }
  }
  size_t previous = 0;
  for (size_t i = 1; i < alignment.size(); ++i) {
    WordTiming& word = alignment[i];
    if (!alignment[previous].word.ends_with(' ') && is_in(word.word, appended)) {
      alignment[previous].word += word.word;
      alignment[previous].tokens.insert(alignment[previous].tokens.end(), word.tokens.begin(), word.tokens.end());
      empty(word);
    } else {
      previous = i;
    }
  }
}

void add_word_times(std::vector<WordTiming> alignment, const WordTimesOptions& options, std::span<Segment> segments) {
  if (segments.empty()) return;
  const double median = median_duration(alignment);
  if (median > 0) shorten_at_sentence_ends(median * 2, alignment);
  merge_punctuations(alignment, options.prepend_punctuations, options.append_punctuations);
  const double offset = static_cast<double>(segments.front().seek) / kFramesPerSecond;
  double last_speech = options.last_speech_timestamp;
  size_t next = 0;
  for (Segment& segment : segments) {
    const auto num_texts = static_cast<size_t>(std::count_if(
        segment.tokens.begin(), segment.tokens.end(), [&](int32_t token) { return token < options.end_of_text; }));
    segment.words.clear();
    for (size_t covered = 0; next < alignment.size() && covered < num_texts; ++next) {
      WordTiming& timing = alignment[next];
      covered += timing.tokens.size();
      if (timing.word.empty()) continue;
      segment.words.push_back(
          {std::move(timing.word), rounded(offset + timing.start), rounded(offset + timing.end), timing.probability});
    }
    if (segment.words.empty()) continue;
    shorten_after_pause(median, last_speech, segment.words);
    settle_borders(median, segment);
    last_speech = segment.end;
  }
}

}  // namespace transept
