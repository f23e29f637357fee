#include "apps/live_turns.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace transept {
namespace {

// What is written to a console.
class Written {
 public:
  explicit Written(int num_columns = 0)
      : file_(open_memstream(&text_, &size_)), turns(LiveConsole(file_, num_columns)) {}
  ~Written() {
    std::fclose(file_);
    std::free(text_);  // NOLINT: open_memstream's
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  // All so far.
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;

 public:
  LiveTurns turns;
};

LiveTranscript transcript(std::string text, bool was_revised = false) {
  LiveTranscript made;
  made.text = std::move(text);
  made.was_revised = was_revised;
  made.seconds = 2;
  made.language = "en";
  return made;
}

TEST(LiveTurns, WordsAreWrittenAtOnceAndATurnIsALine) {
  Written written;
  written.turns.on_speech_started(0, 250);
  written.turns.on_delta(0, "one");
  EXPECT_EQ(written.text(), "one");
  written.turns.on_hypothesis(0, " two three");  // no terminal: nothing is taken back
  written.turns.on_delta(0, " two");
  EXPECT_EQ(written.text(), "one two");
  written.turns.on_speech_stopped(0, 1750);
  written.turns.on_committed(0);
  written.turns.on_delta(0, " four.");
  written.turns.on_completed(0, transcript("one two four."));
  EXPECT_EQ(written.text(), "one two four.\n");
  const LiveTurns::Result result = written.turns.result();
  ASSERT_EQ(result.transcript.segments.size(), 1U);
  EXPECT_EQ(result.transcript.segments[0].text, " one two four.");
  EXPECT_EQ(result.transcript.segments[0].start, 0.25);
  EXPECT_EQ(result.transcript.segments[0].end, 1.75);
  EXPECT_EQ(result.transcript.language, "en");
  EXPECT_EQ(result.transcript.duration, 1.75);
}

TEST(LiveTurns, ATurnWithoutTextHasNoLine) {
  Written written;
  written.turns.on_speech_started(0, 0);
  written.turns.on_completed(0, transcript(""));
  written.turns.on_delta(1, "x");
  written.turns.on_completed(1, transcript("x"));
  EXPECT_EQ(written.text(), "x\n");
  EXPECT_EQ(written.turns.result().num_turns, 2);
  EXPECT_EQ(written.turns.num_segments(), 1U);
}

TEST(LiveTurns, TheNextTurnWaitsForItsLine) {
  Written written;
  written.turns.on_delta(0, "one");
  written.turns.on_committed(0);
  written.turns.on_delta(1, "two");
  written.turns.on_delta(1, " more");
  EXPECT_EQ(written.text(), "one");
  written.turns.on_delta(0, " end");
  written.turns.on_completed(0, transcript("one end"));
  EXPECT_EQ(written.text(), "one end\ntwo more");
  written.turns.on_delta(1, " words");
  written.turns.on_completed(1, transcript("two more words"));
  EXPECT_EQ(written.text(), "one end\ntwo more words\n");
}

TEST(LiveTurns, ADroppedTurnEndsItsLine) {
  Written written;
  written.turns.on_delta(0, "dropped");
  written.turns.on_delta(1, "kept");
  written.turns.on_completed(1, transcript("kept"));
  EXPECT_EQ(written.text(), "dropped\nkept\n");
  written.turns.on_delta(2, "open");
  written.turns.on_finished();
  EXPECT_EQ(written.text(), "dropped\nkept\nopen\n");
  EXPECT_TRUE(written.turns.is_finished());
}

TEST(LiveTurns, AFailedTurnIsCountedAndTheNextGoesOn) {
  Written written;
  written.turns.on_speech_started(0, 1500);
  written.turns.on_delta(0, "half");
  ::testing::internal::CaptureStderr();
  written.turns.on_failed(0, absl::InternalError("the engine stopped"));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("a turn at 1.5 s: the engine stopped"), std::string::npos) << said;
  written.turns.on_delta(1, "next");
  EXPECT_EQ(written.text(), "half\nnext");
  EXPECT_EQ(written.turns.result().num_failed, 1);
}

TEST(LiveTurns, OnATerminalWhatIsOpenIsDimAndOverwritten) {
  Written written(20);
  written.turns.on_delta(0, "one");
  written.turns.on_hypothesis(0, " two");
  EXPECT_EQ(written.text(), "one\x1b[2m two\x1b[0m");
  written.turns.on_hypothesis(0, " too");
  EXPECT_EQ(written.text(), "one\x1b[2m two\x1b[0m\x1b[4D\x1b[K\x1b[2m too\x1b[0m");
  written.turns.on_completed(0, transcript("one"));
  EXPECT_EQ(written.text(), "one\x1b[2m two\x1b[0m\x1b[4D\x1b[K\x1b[2m too\x1b[0m\x1b[4D\x1b[K\n");
}

TEST(LiveTurns, WhatIsOpenEndsBeforeTheLineDoes) {
  Written written(10);
  written.turns.on_delta(0, "12345678");  // one column is left: the last is never written
  written.turns.on_hypothesis(0, " 9");
  EXPECT_EQ(written.text(), "12345678\x1b[2m \x1b[0m");
  written.turns.on_delta(0, " 9ab");  // goes on in the next line: two columns of it
  EXPECT_EQ(written.text(), "12345678\x1b[2m \x1b[0m\x1b[1D\x1b[K 9ab");
  written.turns.on_hypothesis(0, " cdefghijk");
  EXPECT_EQ(written.text(), "12345678\x1b[2m \x1b[0m\x1b[1D\x1b[K 9ab\x1b[2m cdefgh\x1b[0m");
}

TEST(LiveTurns, WideLettersHaveTwoColumns) {
  Written written(8);
  written.turns.on_hypothesis(0, "日本語です");
  EXPECT_EQ(written.text(), "\x1b[2m日本語\x1b[0m");  // six of seven
}

TEST(LiveTurns, AConsoleThatTakesNothingIsSaid) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  LiveTurns turns{LiveConsole(full, 0)};
  EXPECT_TRUE(turns.is_written());
  turns.on_delta(0, "text");
  EXPECT_FALSE(turns.is_written());
  std::fclose(full);
}

}  // namespace
}  // namespace transept
