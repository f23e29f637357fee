// LocalAgreement-n: words on which the last n hypotheses over growing audio agree are told, and never taken back.
// Words are compared by their letters and digits alone, in lower case, and told as the newest hypothesis spells them.
// The punctuation behind the last told word waits for the next one: it changes most. Source: Liu, Spanakis and Niehues,
// "Low-Latency Sequence-to-Sequence Speech Recognition and Translation by Partial Hypothesis Selection" (2020).
//
// Not thread-safe. The free functions are pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

struct HeardWord {
  std::string key;  // letters, digits and marks in lower case; never empty
  size_t end = 0;   // bytes of the text: behind its last letter or digit
};

// Splits at white space, and around each character of scripts that write none between words. Punctuation makes no word
// of its own. `text`: any bytes; invalid UTF-8 counts as punctuation.
std::vector<HeardWord> split_heard(std::string_view text);

// Returns how many words of `told` `text` does not have at their place, by the least edits that make the one a
// beginning of the other.
int64_t num_revised_words(std::string_view told, std::string_view text);

class LocalAgreement final {
 public:
  // Takes the newest hypothesis over the window. Returns the words that the last `num_hypotheses` agree on, behind what
  // was told, so often with a space before them; "": none. REQUIRES: num_hypotheses in [1, 8].
  std::string add(std::string_view hypothesis, int num_hypotheses);

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
