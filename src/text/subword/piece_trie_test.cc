// The trie against looking at every piece.
#include "text/subword/piece_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace transept {
namespace {

using Found = std::vector<std::pair<size_t, int32_t>>;

Found find(const PieceTrie& trie, std::string_view text) {
  Found found;
  trie.for_each_prefix(text, [&](size_t length, int32_t value) { found.push_back({length, value}); });
  return found;
}

TEST(PieceTrieTest, EmptyOnesFindNothing) {
  EXPECT_TRUE(PieceTrie().empty());
  EXPECT_TRUE(PieceTrie({{"", 3}}).empty());
  EXPECT_EQ(find(PieceTrie(), std::string("\0a", 2)), Found());
  EXPECT_EQ(find(PieceTrie({{"", 3}}), "a"), Found());
}

TEST(PieceTrieTest, FindsThePrefixesShortestFirst) {
  const PieceTrie trie({{"ab", 1}, {"a", 7}, {"abcd", 0}, {"b", 2}, {"ab", 9}});
  EXPECT_FALSE(trie.empty());
  EXPECT_EQ(find(trie, "abcde"), (Found{{1, 7}, {2, 9}, {4, 0}})) << "of equal texts the last counts";
  EXPECT_EQ(find(trie, "abc"), (Found{{1, 7}, {2, 9}}));
  EXPECT_EQ(find(trie, "c"), Found());
  EXPECT_EQ(find(trie, ""), Found());
}

TEST(PieceTrieTest, EqualsASearchThroughAllPieces) {
  std::mt19937 random(5);
  for (const unsigned alphabet : {2u, 5u, 256u}) {
    const auto random_bytes = [&](size_t max_length) {
      std::string bytes(random() % (max_length + 1), '\0');
      for (char& byte : bytes) byte = static_cast<char>(random() % alphabet);
      return bytes;
    };
    std::map<std::string, int32_t> pieces;
    for (int32_t i = 0; i < 3000; ++i) pieces[random_bytes(alphabet > 5 ? 3 : 12)] = i;
    std::vector<PieceTrie::Entry> entries;
    for (const auto& [text, value] : pieces) entries.push_back({text, value});
    std::shuffle(entries.begin(), entries.end(), random);
    const PieceTrie trie(entries);
    for (int round = 0; round < 3000; ++round) {
      const std::string text = random_bytes(14);
      Found expected;
      for (size_t length = 1; length <= text.size(); ++length) {
        if (const auto piece = pieces.find(text.substr(0, length)); piece != pieces.end()) {
          expected.push_back({length, piece->second});
        }
      }
      ASSERT_EQ(find(trie, text), expected);
    }
  }
}

}  // namespace
}  // namespace transept
