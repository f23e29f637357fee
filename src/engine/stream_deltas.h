// Streams of answers: what of a growing text may be sent already, and how pieces that were sent become one again. The
// rule is that pieces, put together, are the whole answer, whatever ends it. Values; not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/request_output.h"

namespace transept {

// Adds what a later piece brought: texts, ids and log-probabilities are appended to the outputs of the same index,
// everything else is the later piece's. REQUIRES: pieces of one request, in order.
void merge_delta(RequestOutput& into, RequestOutput&& delta);

// How much of a text's end may be the beginning of a stop string, and is therefore not sent yet: the stop string would
// be cut off. Reads a text once, piece by piece (Knuth, Morris, Pratt 1977), so that neither long texts nor long stop
// strings cost more than their length.
class StopPrefixes final {
 public:
  explicit StopPrefixes(const std::vector<std::string>& stops);

  // One text's place in each stop string. A fork of the text copies it.
  struct Position {
    std::vector<uint32_t> num_matched;
  };

  // The text goes on with `piece`. Returns how many bytes of its end are to be held back.
  size_t feed(Position& position, std::string_view piece) const;

 private:
  struct Pattern {
    std::string stop;
    std::vector<uint32_t> fallback;  // [i]: the longest proper prefix of stop that ends its first i + 1 bytes
  };
  static uint32_t advance(const Pattern& pattern, uint32_t num_matched, char byte);

  std::vector<Pattern> patterns_;
};

// How much of one sequence was sent; nothing where nothing is streamed.
class StreamCursor final {
 public:
  // The pieces that are new of all the ids, and of the whole text so far; they count as sent. Of a text that has not
  // ended, what may begin a stop string stays behind. The end is sent once, then there is no news.
  bool has_news(size_t num_ids, bool has_ended) const { return num_ids > num_ids_ || has_ended != end_was_sent_; }
  std::span<const int32_t> take_ids(std::span<const int32_t> ids);
  std::string_view take_text(std::string_view text, bool has_ended, const StopPrefixes& stops);

 private:
  size_t num_ids_ = 0, num_bytes_ = 0;  // sent
  size_t num_searched_ = 0;             // of the text: fed to stops
  size_t num_held_back_ = 0;
  StopPrefixes::Position position_;
  bool end_was_sent_ = false;
};

}  // namespace transept
