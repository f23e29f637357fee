// Lines of text files as a filter reads them: ends, marks, lengths, several files, and what cannot be read.
#include "apps/text_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

// "place|text" of every line, "~" behind one that ended in CRLF, "!" behind one that is too long.
std::vector<std::string> read_all(TextLines& lines) {
  std::vector<std::string> all;
  TextLine line;
  for (LineReader::Result got; (got = lines.next(line)) != LineReader::Result::kEnd;) {
    if (got != LineReader::Result::kLine) continue;
    const std::string name = line.place.substr(line.place.rfind('/') + 1);
    all.push_back(str_cat(name, "|", line.text, line.is_crlf ? "~" : "", line.is_too_long ? "!" : ""));
  }
  return all;
}

class TextLinesTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view content) {
    folder_.write(name, content);
    return folder_.path() + "/" + name;
  }
  TextLines open(std::vector<std::string> paths) {
    StatusOr<TextLines> lines = TextLines::open(std::move(paths));
    EXPECT_TRUE(lines.ok()) << lines.status();
    return std::move(lines).value();
  }

  testing::TestFolder folder_;
};

TEST_F(TextLinesTest, EveryLineHasItsPlaceAndItsEnd) {
  TextLines lines = open({write("a", "one\n\r\n\ntwo\r\n"), write("empty", ""), write("b", "three\n\nlast")});
  EXPECT_EQ(lines.count(), 7);
  EXPECT_EQ(read_all(lines),
            (std::vector<std::string>{"a:1|one", "a:2|~", "a:3|", "a:4|two~", "b:1|three", "b:2|", "b:3|last"}));
  EXPECT_TRUE(lines.status().ok());
}

TEST_F(TextLinesTest, ALastEmptyLineIsALineAndNothingIsNone) {
  TextLines lines = open({write("a", "x\n\n"), write("b", "\n"), write("c", "y\r")});
  EXPECT_EQ(lines.count(), 4);
  EXPECT_EQ(read_all(lines), (std::vector<std::string>{"a:1|x", "a:2|", "b:1|", "c:1|y~"}));
}

TEST_F(TextLinesTest, BytesAreKeptButForTheMarkAtTheBeginningOfAFile) {
  using std::string_literals::operator""s;
  TextLines lines = open({write("a", "\xEF\xBB\xBFq\n\xEF\xBB\xBFr\n"), write("b", "\xEF\xBB\xBFs\0\xFF\rt\n"s)});
  EXPECT_EQ(read_all(lines), (std::vector<std::string>{"a:1|q", "a:2|\xEF\xBB\xBFr", "b:1|s\0\xFF\rt"s}));
}

TEST_F(TextLinesTest, ALineThatIsTooLongIsMarkedAndTheNextOneIsWhole) {
  TextLines lines = open({write("a", "12345678\n123456789\n" + std::string(200000, 'x') + "\r\n1234567\r\n")});
  lines.set_max_bytes(8);
  EXPECT_EQ(read_all(lines),
            (std::vector<std::string>{"a:1|12345678", "a:2|123456789!", "a:3|xxxxxxxxx!", "a:4|1234567~"}));
}

// The cut falls just behind a carriage return, which then ends no line.
TEST_F(TextLinesTest, ACarriageReturnAtTheCutDoesNotMakeALongLineShort) {
  TextLines lines = open({write("a", "12345678\rand more\n")});
  lines.set_max_bytes(8);
  EXPECT_EQ(read_all(lines), std::vector<std::string>{"a:1|12345678\r!"});
}

TEST_F(TextLinesTest, WhatCannotBeReadIsAnErrorByNameBeforeAnythingIsRead) {
  const std::string good = write("a", "x\n");
  EXPECT_THAT(error_message(TextLines::open({good, folder_.path() + "/nowhere"}).status()),
              HasSubstr("/nowhere: No such"));
  EXPECT_THAT(error_message(TextLines::open({good, folder_.path()}).status()), HasSubstr(": is a folder"));
}

TEST_F(TextLinesTest, AFileThatGoesAwayEndsTheLinesWithAnError) {
  TextLines lines = open({write("a", "x\n"), write("b", "y\n")});
  ASSERT_EQ(::unlink((folder_.path() + "/b").c_str()), 0);
  EXPECT_EQ(read_all(lines), std::vector<std::string>{"a:1|x"});
  EXPECT_THAT(error_message(lines.status()), HasSubstr("/b: No such file"));
}

TEST_F(TextLinesTest, WhatIsNoPlainFileIsNotCounted) {
  const std::string fifo = folder_.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(open({fifo}).count(), std::nullopt);
  EXPECT_EQ(open({"-"}).count(), std::nullopt);
}

TEST(IsBlank, IsUnicodesWhiteSpace) {
  for (const char* text : {"", " ", " \t\v\f\r", "\xE3\x80\x80", "\xC2\xA0 \xE2\x80\x8A"}) EXPECT_TRUE(is_blank(text));
  // A letter, an invisible character that is no space, a byte that is no character, half a character.
  for (const char* text : {" a ", "\xE2\x80\x8B", "\xA0", " \xE3\x80"}) EXPECT_FALSE(is_blank(text)) << text;
  EXPECT_FALSE(is_blank(std::string_view("\0", 1)));
}

}  // namespace
}  // namespace transept
