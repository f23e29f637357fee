// Tokens, attention and times of any kind through the whole path from a window's tokens to its segments with words:
// whatever a model answers, times stay in order and within the window.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "speech/subtitles.h"
#include "speech/window_segments.h"
#include "speech/word_times.h"

namespace transept {
namespace {

constexpr int32_t kEndOfText = 256, kTimestampBegin = 300;

// Reads the input from the front; zeros after its end.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t next() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  float next_float() {
    uint8_t bytes[4];
    for (uint8_t& byte : bytes) byte = next();
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

void run(Bytes input) {
  const int64_t size = input.next() * 12;
  const bool single_characters = input.next() % 2 == 1;
  std::vector<int32_t> tokens(input.next() % 40);
  for (int32_t& token : tokens) {
    token = input.next();
    if (token > 200) token = kTimestampBegin + (token - 200) * 40;
  }
  WindowWords words = {.window = window_segments(
                           {.tokens = tokens, .seek = 50, .segment_size = size, .timestamp_begin = kTimestampBegin})};
  std::vector<int32_t> texts;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(texts), [](int32_t t) { return t < kEndOfText; });
  const auto num_tokens = static_cast<int64_t>(texts.size()) + 3;
  const int64_t heads = 1 + input.next() % 3, positions = input.next() % 64;
  std::vector<float> probabilities(texts.size()), attention(heads * num_tokens * positions);
  for (float& p : probabilities) p = input.next_float();
  for (float& weight : attention) weight = input.next_float();
  auto alignment = align_words(
      {.attention = attention,
       .num_heads = heads,
       .num_tokens = num_tokens,
       .num_positions = positions,
       .num_prefix_tokens = 1,
       .num_frames = size,
       .text_tokens = texts,
       .probabilities = probabilities},
      [](int32_t token, std::string& out) { out += static_cast<char>(token); },
      single_characters ? WordSplit::kCharacters : WordSplit::kSpaces);
  CHECK(alignment.ok());
  double last = 0;
  for (const WordTiming& word : *alignment) {
    CHECK(word.start >= last && word.end >= word.start && word.end <= 30);
    CHECK(word.probability >= 0 && word.probability <= 1);
    last = word.start;
  }
  add_word_times(*std::move(alignment), {.end_of_text = kEndOfText, .last_speech_timestamp = 0}, words.window.segments);
  const double threshold = 0.5;
  settle_words({.seek = 50, .segment_size = size, .content_frames = 4000}, single_characters ? &threshold : nullptr,
               words);
  CHECK(words.window.next_seek > 50);
  clear_empty_segments(words.window.segments);
  const Transcript transcript = {.segments = words.window.segments, .has_words = true};
  const SubtitleOptions options = {.max_line_width = size % 30, .max_line_count = size % 3, .highlight_words = true};
  for (const TranscriptFormat format : kTranscriptFormats) {
    CHECK(!write_transcript(transcript, format, options).empty() || transcript.segments.empty() ||
          format == TranscriptFormat::kSrt);
  }
}

}  // namespace
}  // namespace transept

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  transept::run(transept::Bytes(data, size));
  return 0;
}
