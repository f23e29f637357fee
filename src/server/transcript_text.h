// The text of a transcript as its segments are decided, piece by piece: all pieces together are the whole text without
// the spaces around it. (Segments' own texts are not: a character may begin in one and end in the next, and some
// tokenizers put no space before the first word of a text.)
#pragma once

#include <string>

#include "speech/transcriber.h"
#include "text/detokenizer.h"

namespace transept {

// Not thread-safe. Borrows the model's tokenizer.
class TranscriptText final {
 public:
  explicit TranscriptText(const SpeechModel& speech);

  // What the segment adds; spaces at its end wait for what follows them.
  std::string add(const Segment& segment);
  // No segment will follow: what was held back.
  std::string finish();

  const std::string& text() const { return text_; }  // all that was given so far

 private:
  std::string take();

  IncrementalDetokenizer detokenizer_;
  int32_t end_;           // ids from here on are timestamps
  size_t num_taken_ = 0;  // bytes of the detokenizer's text
  std::string text_;
};

}  // namespace transept
