#include "speech/local_agreement.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "speech/characters.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

constexpr size_t kMostHypotheses = 8;

// Scripts that write no spaces between words: Thai, Lao, Myanmar, Khmer, kana and Han.
bool is_unspaced(uint32_t c) {
  return (c >= 0x0E00 && c <= 0x0EFF) || (c >= 0x1000 && c <= 0x109F) || (c >= 0x1780 && c <= 0x17FF) ||
         (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFF66 && c <= 0xFF9D) || (c >= 0x20000 && c <= 0x3FFFF);
}

std::vector<std::string> keys_of(std::span<const HeardWord> words) {
  std::vector<std::string> keys;
  for (const HeardWord& word : words) keys.push_back(word.key);
  return keys;
}

// Returns, for each length of a beginning of `words`, the edits that make it `told`.
std::vector<int64_t> edits_to_beginnings(std::span<const std::string> told, std::span<const HeardWord> words) {
  std::vector<int64_t> row(words.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < told.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < words.size(); ++j) {
      const int64_t replaced = diagonal + (told[i] == words[j].key ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row;
}

// The number of words that stand for what was told: the fewest edits, then the number nearest to that of told words.
size_t told_beginning(std::span<const std::string> told, std::span<const HeardWord> words) {
  const std::vector<int64_t> edits = edits_to_beginnings(told, words);
  const auto distance = [&](size_t count) { return count > told.size() ? count - told.size() : told.size() - count; };
  size_t best = 0;
  for (size_t i = 1; i < edits.size(); ++i) {
    if (edits[i] < edits[best] || (edits[i] == edits[best] && distance(i) < distance(best))) best = i;
  }
  return best;
}

}  // namespace

std::vector<HeardWord> split_heard(std::string_view text, std::span<const HeardToken> tokens) {
  std::vector<HeardWord> words;
  bool joins = false;       // the next letter belongs to the last word
  bool is_counted = false;  // the first of tokens, in the last word's log-probability
  for (size_t i = 0; i < text.size();) {
    const Utf8Step step = read_utf8(text.substr(i));
    const auto length = static_cast<size_t>(step.num_bytes);
    const size_t begin = i;
    i += length;
    while (!tokens.empty() && tokens.front().end <= begin) {
      tokens = tokens.subspan(1);
      is_counted = false;
    }
    if (step.kind != Utf8Step::Kind::kValid) continue;
    const uint32_t c = step.code_point;
    if (is_space(c)) joins = false;
    const CharClass kind = char_class(c);
    const bool is_part = is_mark(c);  // of the character before it
    if (kind != CharClass::kLetter && kind != CharClass::kNumber && !is_part) continue;
    const bool stands_alone = is_unspaced(c) && !is_part;
    if (words.empty() || !(joins || (is_part && words.back().end == begin)) || stands_alone) {
      if (is_part) continue;  // of nothing
      words.emplace_back();
      is_counted = false;
    }
    if (!tokens.empty() && !std::exchange(is_counted, true)) words.back().logprob += tokens.front().logprob;
    words.back().key += lowercase(text.substr(begin, length));
    words.back().end = i;
    if (!is_part) joins = !stands_alone;
  }
  return words;
}

int64_t num_revised_words(std::string_view told, std::string_view text) {
  const std::vector<std::string> keys = keys_of(split_heard(told));
  const std::vector<HeardWord> words = split_heard(text);
  return std::min<int64_t>(std::ranges::min(edits_to_beginnings(keys, words)), std::ssize(keys));
}

std::string LocalAgreement::add(HeardText hypothesis, const AgreementRule& rule) {
  CHECK(!rule.empty() && rule.size() <= kMostHypotheses, rule.size(), " hypotheses");
  if (has_newest_) earlier_.push_front(keys_of(words_));
  if (earlier_.size() >= kMostHypotheses) earlier_.pop_back();
  has_newest_ = true;
  newest_ = std::move(hypothesis.text);
  words_ = split_heard(newest_, hypothesis.tokens);
  const size_t skipped = told_beginning(window_keys_, words_);
  told_end_ = skipped > 0 ? words_[skipped - 1].end : 0;
  words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(skipped));
  const size_t agreed = num_agreed(rule);
  return agreed > 0 ? tell(words_[agreed - 1].end, agreed) : "";
}

// Of the newest hypothesis' words behind what was told, how many may be told.
size_t LocalAgreement::num_agreed(const AgreementRule& rule) const {
  // For each number of hypotheses, the newest included, on how many words they agree.
  std::vector<size_t> agreed = {words_.size()};
  for (size_t i = 0; i < earlier_.size() && agreed.size() < rule.size(); ++i) {
    const auto differ = std::ranges::mismatch(words_, earlier_[i], {}, &HeardWord::key);
    agreed.push_back(std::min(agreed.back(), static_cast<size_t>(differ.in1 - words_.begin())));
  }
  size_t count = 0;
  for (; count < words_.size(); ++count) {
    size_t num_hypotheses = 1;
    while (num_hypotheses < agreed.size() && agreed[num_hypotheses] > count) ++num_hypotheses;
    if (!(words_[count].logprob >= rule[num_hypotheses - 1])) break;
  }
  return count;
}

// Tells the newest up to byte `end`, which the next num_words words are.
std::string LocalAgreement::tell(size_t end, size_t num_words) {
  std::string text = newest_.substr(told_end_, end - told_end_);
  if (told_.empty()) {
    text.erase(0, leading_space_bytes(text));
  } else if (is_new_window_ && leading_space_bytes(text) == 0 && !text.empty() &&
             !is_unspaced(read_utf8(text).code_point)) {
    text.insert(0, " ");
  }
  is_new_window_ = false;
  told_ += text;
  told_end_ = end;
  num_told_words_ += static_cast<int64_t>(num_words);
  const auto first = words_.begin(), last = words_.begin() + static_cast<std::ptrdiff_t>(num_words);
  for (auto word = first; word != last; ++word) window_keys_.push_back(word->key);
  words_.erase(first, last);
  for (std::vector<std::string>& keys : earlier_) {
    keys.erase(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(num_words, keys.size())));
  }
  return text;
}

std::string LocalAgreement::close_window() {
  const std::string_view whole = newest_;
  const size_t end = std::max(told_end_, leading_space_bytes(whole) + strip_space(whole).size());
  std::string text = words_.empty() && told_end_ == 0 ? "" : tell(end, words_.size());
  has_newest_ = false;
  newest_.clear();
  words_.clear();
  window_keys_.clear();
  earlier_.clear();
  told_end_ = 0;
  is_new_window_ = true;
  return text;
}

std::string LocalAgreement::cut_window(size_t num_bytes) {
  CHECK(is_told(num_bytes) && num_bytes <= newest_.size(), "byte ", num_bytes, " of ", newest_.size());
  std::string text = num_bytes > told_end_ ? tell(num_bytes, 0) : "";
  newest_.erase(0, num_bytes);
  told_end_ -= num_bytes;
  // Of what was told, the words that stand behind the cut.
  window_keys_ = keys_of(split_heard(std::string_view(newest_).substr(0, told_end_)));
  for (HeardWord& word : words_) word.end -= num_bytes;
  is_new_window_ = window_keys_.empty();
  return text;
}

}  // namespace transept
