// Proves that a shortlist file gives the sets that Marian's rule gives, and that every kind of wrong file is refused by
// file, field and reason.
#include "weights/shortlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "weights/shortlist_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TestShortlist;

constexpr Shortlist::Vocabularies kTwo{.source = 5, .target = 20};
constexpr Shortlist::Vocabularies kOne{.source = 20, .target = 20, .is_shared = true};

StatusOr<Shortlist> parse(const std::string& bytes, const Shortlist::Vocabularies& vocabularies = kTwo) {
  return Shortlist::parse(std::as_bytes(std::span(bytes)), "lex.s2t.bin", vocabularies);
}

std::vector<int32_t> set_of(const Shortlist& list, std::vector<int32_t> source, std::vector<int32_t> also = {}) {
  std::vector<int32_t> ids = {77};  // what was there goes
  list.set_of(source, also, ids);
  return ids;
}

TestShortlist usual() { return TestShortlist::of(3, {{0, 7}, {}, {19, 5, 5}, {7, 8}}); }

TEST(ShortlistTest, ASetIsTheFirstIdsAndTheListsOfTheSourceIds) {
  const StatusOr<Shortlist> list = parse(usual().bytes());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->first(), 3);
  EXPECT_EQ(list->best(), 3);
  EXPECT_EQ(list->num_lists(), 4);
  EXPECT_EQ(list->num_words(), 7);
  EXPECT_THAT(set_of(*list, {}), ElementsAre(0, 1, 2));
  EXPECT_THAT(set_of(*list, {1}), ElementsAre(0, 1, 2));
  EXPECT_THAT(set_of(*list, {0}), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(set_of(*list, {3, 2, 0, 3}), ElementsAre(0, 1, 2, 5, 7, 8, 19)) << "each once, ascending";
  EXPECT_THAT(set_of(*list, {0}, {9, 1, 7, 20, -1}), ElementsAre(0, 1, 2, 7, 9)) << "what is asked for besides";
  EXPECT_THAT(set_of(*list, {4, 99, -3}), ElementsAre(0, 1, 2)) << "source ids without a list";
}

TEST(ShortlistTest, WithOneVocabularySourceWordsMayStandInTheAnswer) {
  const StatusOr<Shortlist> list = parse(usual().bytes(), kOne);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(set_of(*list, {3, 1, 12}), ElementsAre(0, 1, 2, 3, 7, 8, 12));
}

TEST(ShortlistTest, MoreFirstIdsThanThereAreAreAll) {
  TestShortlist all = TestShortlist::of(uint64_t{1} << 63, {{4}});
  const StatusOr<Shortlist> list = parse(all.bytes());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(set_of(*list, {0}).size(), 20u);
}

// Worked out by hand from the rule: two values, 1 and 2.
TEST(ShortlistTest, TheChecksumIsMariansAndLeavesAnOddHalfOut) {
  const std::vector<uint32_t> values = {1, 0, 2, 0, 99};
  const uint64_t one = 1 + 0x9e3779b9;
  const uint64_t both = one ^ (2 + 0x9e3779b9 + (one << 6) + (one >> 2));
  EXPECT_EQ(shortlist_checksum(std::as_bytes(std::span(values))), both);
}

TEST(ShortlistTest, EveryDamagedByteIsSeen) {
  const std::string good = TestShortlist::of(3, {{0, 7}, {8, 9}}).bytes();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    EXPECT_FALSE(parse(bad).ok()) << "byte " << i;
  }
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse(good.substr(0, size)).ok()) << size;
  EXPECT_FALSE(parse(good + "more").ok());
}

TEST(ShortlistTest, ErrorsNameFileFieldAndReason) {
  const auto error = [](const std::string& bytes, const Shortlist::Vocabularies& vocabularies = kTwo) {
    const StatusOr<Shortlist> list = parse(bytes, vocabularies);
    EXPECT_FALSE(list.ok());
    EXPECT_THAT(error_message(list.status()), StartsWith("lex.s2t.bin: "));
    return error_message(list.status());
  };
  EXPECT_THAT(error("hello\tworld\t0.5\nand more than a header of it, with many words and numbers\n"),
              HasSubstr("magic: not a binary shortlist of Marian's, but text: marian-conv"));
  EXPECT_THAT(error("\x1f\x8b\x08"), HasSubstr("gzip"));
  EXPECT_THAT(error(std::string(100, '\0')), HasSubstr("magic: not a binary shortlist"));
  EXPECT_THAT(error(""), HasSubstr("magic"));
  EXPECT_THAT(error_message(Shortlist::parse({}, "lex.s2t.bin", kTwo).status()), HasSubstr("magic"));
  EXPECT_THAT(error(usual().bytes().substr(0, 20)), HasSubstr("only 20 bytes"));
  EXPECT_THAT(error(usual().bytes() + "x"), HasSubstr("header: 5 offsets and 7 words are not what the file's"));
  std::string damaged = usual().bytes();
  damaged[16] = 9;
  EXPECT_THAT(error(damaged), HasSubstr("checksum: is "));
  TestShortlist falls = usual();
  falls.offsets[2] = 1;
  EXPECT_THAT(error(falls.bytes()), HasSubstr("offsets: offset 2 is 1, not between the one before it (2)"));
  TestShortlist past = usual();
  past.offsets[1] = 8;
  EXPECT_THAT(error(past.bytes()), HasSubstr("offset 1 is 8"));
  TestShortlist early = usual();
  early.offsets.back() = 6;
  EXPECT_THAT(error(early.bytes()), HasSubstr("the last one is 6, but there are 7 words"));
  TestShortlist none = usual();
  none.offsets.clear();
  EXPECT_THAT(error(none.bytes()), HasSubstr("offsets: there are none"));
  TestShortlist id = usual();
  id.words[4] = 20;
  EXPECT_THAT(error(id.bytes()), HasSubstr("words: word 4 is id 20, but the model has 20 target ids"));
  id.words[4] = 0xFFFFFFFF;
  EXPECT_THAT(error(id.bytes()), HasSubstr("word 4 is id 4294967295"));
  EXPECT_THAT(error(usual().bytes(), {.source = 3, .target = 20}), HasSubstr("lists for 4 source ids"));
}

// Numbers of the header whose bytes overflow 64 bits are no sizes.
TEST(ShortlistTest, SizesThatOverflowAreRefused) {
  const std::string good = usual().bytes();
  for (const size_t at : {size_t{32}, size_t{40}}) {
    for (const uint64_t wrap : {uint64_t{1} << 61, uint64_t{1} << 62, ~uint64_t{0}}) {
      std::string bad = good;
      uint64_t value;
      std::memcpy(&value, bad.data() + at, sizeof value);
      value += wrap;
      std::memcpy(bad.data() + at, &value, sizeof value);
      const StatusOr<Shortlist> list = parse(bad);
      EXPECT_FALSE(list.ok()) << at << " " << wrap;
      EXPECT_THAT(error_message(list.status()), HasSubstr("are not what the file's")) << at;
    }
  }
}

TEST(ShortlistTest, AFileIsReadByItsPath) {
  const testing::TestFolder folder;
  folder.write("lex.s2t.bin", usual().bytes());
  const StatusOr<Shortlist> list = Shortlist::open(folder.path() + "/lex.s2t.bin", kTwo);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(set_of(*list, {0}), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(error_message(Shortlist::open(folder.path() + "/none.bin", kTwo).status()), HasSubstr("none.bin"));
}

}  // namespace
}  // namespace transept
