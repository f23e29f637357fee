#include "net/sse.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace transept {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events read_all(std::string_view text, size_t piece_bytes, bool* was_read = nullptr, size_t max_bytes = 1 << 20) {
  SseReader reader(max_bytes);
  Events events;
  const auto keep = [&](std::string_view event, std::string_view data) { events.emplace_back(event, data); };
  bool goes_on = true;
  for (size_t i = 0; i < text.size(); i += piece_bytes) goes_on = reader.push(text.substr(i, piece_bytes), keep);
  if (was_read != nullptr) *was_read = goes_on;
  return events;
}

TEST(SseWriterTest, WritesOneLineEach) {
  std::string out;
  append_sse_event(out, "{\"a\": 1}");
  EXPECT_EQ(out, "data: {\"a\": 1}\n\n");
  append_sse_event(out, "x", "transcript.text.delta");
  EXPECT_EQ(out, "data: {\"a\": 1}\n\nevent: transcript.text.delta\ndata: x\n\n");
}

// Data cannot end its event early, nor begin a field of its own.
TEST(SseWriterTest, BreaksInDataBeginDataLines) {
  std::string out;
  append_sse_event(out, "a\nevent: b\r\n\r\nc\rd\n");
  EXPECT_EQ(out, "data: a\ndata: event: b\ndata: \ndata: c\ndata: d\ndata: \n\n");
  EXPECT_EQ(read_all(out, 1000), (Events{{"", "a\nevent: b\n\nc\nd\n"}}));
}

TEST(SseWriterTest, BreaksInNamesAreDropped) {
  std::string out;
  append_sse_event(out, "", "a\r\ndata: b");
  EXPECT_EQ(out, "event: adata: b\ndata: \n\n");
  out.clear();
  append_sse_event(out, "x", "\n");
  EXPECT_EQ(out, "data: x\n\n");
}

// Every way of cutting the bytes gives the same events, for every kind of line break.
TEST(SseReaderTest, ReadsEventsHoweverTheyAreCut) {
  const std::string text =
      "\xEF\xBB\xBF: a comment\r\ndata: one\r\ndata:two\r\n\r\n"
      "event: named\rdata\rdata:  spaced\r\r"
      "id: 7\nretry: 100\n\nunknown: x\ndata: [DONE]\n\n"
      "data: unfinished\n";
  const Events expected = {{"", "one\ntwo"}, {"named", "\n spaced"}, {"", "[DONE]"}};
  for (size_t piece = 1; piece <= text.size(); ++piece) EXPECT_EQ(read_all(text, piece), expected) << piece;
}

TEST(SseReaderTest, AnEventsNameDoesNotReachTheNext) {
  EXPECT_EQ(read_all("event: a\n\ndata: x\n\n", 3), (Events{{"", "x"}}));
}

TEST(SseReaderTest, EventsHaveABound) {
  bool goes_on = true;
  EXPECT_EQ(read_all("data: ok\n\ndata: 0123456789\n\ndata: ok\n\n", 4, &goes_on, 12), (Events{{"", "ok"}}));
  EXPECT_FALSE(goes_on);
  read_all("data: ok\n\ndata: ok\n\n", 4, &goes_on, 12);
  EXPECT_TRUE(goes_on);
  // Many short lines are one event too.
  read_all("data: 1\ndata: 2\ndata: 3\ndata: 4\ndata: 5\n", 100, &goes_on, 12);
  EXPECT_FALSE(goes_on);
}

}  // namespace
}  // namespace transept
