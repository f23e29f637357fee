#include "server/transcript_text.h"

#include "speech/characters.h"

namespace transept {

// As WindowDecoder makes the whole text.
TranscriptText::TranscriptText(const SpeechModel& speech)
    : detokenizer_(*speech.tokenizer, {}, /*skip_special_tokens=*/speech.tokens == nullptr),
      end_(speech.tokens != nullptr && speech.tokens->no_timestamps.has_value() ? *speech.tokens->timestamp_begin()
                                                                                : std::numeric_limits<int32_t>::max()) {
}

std::string TranscriptText::add(const Segment& segment) {
  for (const int32_t id : segment.tokens) {
    if (id < end_) detokenizer_.append(id);
  }
  return take();
}

std::string TranscriptText::finish() {
  detokenizer_.finish();
  return take();
}

std::string TranscriptText::take() {
  std::string_view rest = std::string_view(detokenizer_.text()).substr(num_taken_);
  if (text_.empty()) {
    const size_t num_spaces = leading_space_bytes(rest);
    num_taken_ += num_spaces;
    rest.remove_prefix(num_spaces);
  }
  const std::string_view kept = strip_space(rest);
  if (kept.empty()) return "";
  std::string piece(rest.substr(0, static_cast<size_t>(kept.data() - rest.data()) + kept.size()));
  num_taken_ += piece.size();
  text_ += piece;
  return piece;
}

}  // namespace transept
