// LocalAgreement: words on which the last hypotheses over growing audio agree are told, and never taken back. How many
// must agree on a word depends on how probable the newest one finds it (AgreementRule). Words are compared by their
// letters and digits alone, in lower case, and told as the newest hypothesis spells them. The punctuation behind the
// last told word waits for the next one: it changes most. Source: Liu, Spanakis and Niehues, "Low-Latency
// Sequence-to-Sequence Speech Recognition and Translation by Partial Hypothesis Selection" (2020).
//
// Not thread-safe. The free functions are pure.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

struct HeardToken {
  size_t end = 0;     // bytes of the text: behind it
  float logprob = 0;  // natural logarithm
};

struct HeardText {
  std::string text;
  std::vector<HeardToken> tokens;  // of the text, in order; what none covers is certain
};

struct HeardWord {
  std::string key;    // letters, digits and marks in lower case; never empty
  size_t end = 0;     // bytes of the text: behind its last letter or digit
  float logprob = 0;  // sum over the tokens that its letters and digits are of
};

// Splits at white space, and around each character of scripts that write none between words. Punctuation makes no word
// of its own. `text`: any bytes; invalid UTF-8 counts as punctuation.
std::vector<HeardWord> split_heard(std::string_view text, std::span<const HeardToken> tokens = {});

// When a word is told. [i]: if i + 1 hypotheses agree on it, its log-probability in the newest one must be at least so
// much. Infinity: so few are never enough; -infinity: they always are. REQUIRES: 1 to 8 numbers, each at most the one
// before it.
using AgreementRule = std::vector<float>;

// Returns how many words of `told` `text` does not have at their place, by the least edits that make the one a
// beginning of the other.
int64_t num_revised_words(std::string_view told, std::string_view text);

class LocalAgreement final {
 public:
  // Takes the newest hypothesis over the window. Returns the words that may be told by the rule, behind what was told,
  // so often with a space before them; "": none.
  std::string add(HeardText hypothesis, const AgreementRule& rule);

  // Tells what the newest hypothesis has behind what was told, and begins a new window.
  std::string close_window();
  // Whether all words in the first num_bytes of the newest hypothesis are told.
  bool is_told(size_t num_bytes) const { return words_.empty() || words_.front().end > num_bytes; }
  // Begins a new window behind these bytes. Returns the punctuation in them that was not told. REQUIRES: is_told();
  // num_bytes of the newest hypothesis at most.
  std::string cut_window(size_t num_bytes);

  // All that was told, joined.
  const std::string& told() const { return told_; }
  int64_t num_told_words() const { return num_told_words_; }
  // What the newest hypothesis says behind what was told, and whether that has words.
  std::string_view open() const { return std::string_view(newest_).substr(told_end_); }
  bool has_open_words() const { return !words_.empty(); }

 private:
  size_t num_agreed(const AgreementRule& rule) const;
  std::string tell(size_t end, size_t num_words);

  std::string told_;
  int64_t num_told_words_ = 0;
  std::vector<std::string> window_keys_;  // told words that the window holds
  bool has_newest_ = false;               // of this window
  std::string newest_;
  std::vector<HeardWord> words_;                  // of newest_, behind what was told
  size_t told_end_ = 0;                           // bytes of newest_
  bool is_new_window_ = true;                     // nothing of newest_ was told in it
  std::deque<std::vector<std::string>> earlier_;  // hypotheses before the newest, behind what was told; newest first
};

}  // namespace transept
