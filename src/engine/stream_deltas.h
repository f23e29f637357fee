// Streaming of answers: which part of a growing text may be sent already, and how sent pieces are merged again. The
// pieces together are always the whole answer, however it ends. Values. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/request_output.h"

namespace transept {

// Merges a later piece: appends its texts, ids and log-probabilities to the outputs of the same index, and takes
// everything else from it. REQUIRES: pieces of one request, in order.
void merge_delta(RequestOutput& into, RequestOutput&& delta);

// Finds how much of a text's end may be the beginning of a stop string. That part is not sent yet, since a stop string
// is cut off. Reads a text once, piece by piece (Knuth, Morris, Pratt 1977), so the cost of long texts and long stop
// strings is linear in their length.
class StopPrefixes final {
 public:
  explicit StopPrefixes(const std::vector<std::string>& stops);

  // The position of one text in each stop string. A fork of the text copies it.
  struct Position {
    std::vector<uint32_t> num_matched;
  };

  // Continues the text with `piece`. Returns how many bytes of the text's end to hold back.
  size_t feed(Position& position, std::string_view piece) const;

 private:
  struct Pattern {
    std::string stop;
    std::vector<uint32_t> fallback;  // [i]: the longest proper prefix of stop that ends its first i + 1 bytes
  };
  static uint32_t advance(const Pattern& pattern, uint32_t num_matched, char byte);

  std::vector<Pattern> patterns_;
};

// How much of one sequence was sent; zero without streaming.
class StreamCursor final {
 public:
  // take_ids and take_text return what is new of all the ids and of the whole text so far, and count it as sent. Until
  // the text has ended, take_text holds back what may begin a stop string. The end is sent once; then there is no news.
  bool has_news(size_t num_ids, bool has_ended) const { return num_ids > num_ids_ || has_ended != end_was_sent_; }
  std::span<const int32_t> take_ids(std::span<const int32_t> ids);
  std::string_view take_text(std::string_view text, bool has_ended, const StopPrefixes& stops);

 private:
  size_t num_ids_ = 0, num_bytes_ = 0;  // sent
  size_t num_searched_ = 0;             // bytes of the text, fed to stops
  size_t num_held_back_ = 0;
  StopPrefixes::Position position_;
  bool end_was_sent_ = false;
};

}  // namespace transept
