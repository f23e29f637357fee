// Builds the text of a transcript piece by piece, as its segments are decided. All pieces together are the whole text
// without the spaces around it. The texts of the segments do not join to it: a character may begin in one segment and
// end in the next, and some tokenizers put no space before the first word of a text.
#pragma once

#include <string>

#include "speech/transcriber.h"
#include "text/detokenizer.h"

namespace transept {

// Owned by one stream. Borrows the model's tokenizer. Not thread-safe.
class TranscriptText final {
 public:
  explicit TranscriptText(const SpeechModel& speech);

  // Returns the text that the segment adds, maybe "". Holds back spaces and incomplete characters at its end.
  std::string add(const Segment& segment);
  // Ends the text: returns what was held back, without spaces at the end. No add() may follow.
  std::string finish();

  const std::string& text() const { return text_; }  // all pieces so far

 private:
  std::string take();

  IncrementalDetokenizer detokenizer_;
  int32_t end_;           // ids from this one are timestamps
  size_t num_taken_ = 0;  // bytes of the detokenizer's text that were returned or skipped
  std::string text_;
};

}  // namespace transept
