// The search against all ways to cut a text, and against time.
#include "text/subword/unigram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "text/text_testing.h"

namespace transept {
namespace {

struct Piece {
  std::string text;
  double score;
};

template <typename Stored>
UnigramSearch<Stored> make_search(const std::vector<Piece>& pieces, std::optional<int32_t> unk_id = 0) {
  typename UnigramSearch<Stored>::Pieces made;
  std::vector<PieceTrie::Entry> entries;
  for (size_t i = 0; i < pieces.size(); ++i) {
    entries.push_back({pieces[i].text, static_cast<int32_t>(i)});
    made.scores.push_back(pieces[i].score);
  }
  made.trie = PieceTrie(entries);
  made.unk_score = -20;
  made.unk_id = unk_id;
  return UnigramSearch<Stored>(std::move(made));
}

template <typename Stored>
std::vector<std::pair<std::string, int32_t>> cut(const UnigramSearch<Stored>& search, std::string_view text) {
  typename UnigramSearch<Stored>::Workspace work;
  std::vector<std::pair<std::string, int32_t>> found;
  EXPECT_TRUE(search.cut(text, work, [&](TextRange range, int32_t id) {
    found.push_back({std::string(range.of(text)), id});
  }));
  return found;
}

// The example of models/unigram/model.rs.
TEST(UnigramTest, TakesTheGreatestSum) {
  const auto search = make_search<double>(
      {{"<unk>", 0}, {"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}, {"cd", 1}, {"ab", 2}, {"abc", 5}, {"abcd", 10}});
  EXPECT_EQ(cut(search, "abcdacdxx"),
            (std::vector<std::pair<std::string, int32_t>>{{"abcd", 8}, {"a", 1}, {"cd", 5}, {"x", 0}, {"x", 0}}));
  EXPECT_EQ(cut(search, "日a"), (std::vector<std::pair<std::string, int32_t>>{{"日", 0}, {"a", 1}}));
  EXPECT_TRUE(cut(search, "").empty());
}

TEST(UnigramTest, ATextThatNeedsAnUnknownPieceFailsWhereThereIsNone) {
  const auto search = make_search<double>({{"a", -1}}, std::nullopt);
  UnigramSearch<double>::Workspace work;
  const auto ignore = [](TextRange, int32_t) {};
  EXPECT_TRUE(search.cut("aaa", work, ignore));
  EXPECT_FALSE(search.cut("aba", work, ignore));
}

TEST(UnigramTest, NoCutIsBetter) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<Piece> pieces = {{"<unk>", 0}};
    for (int i = 0; i < 12; ++i) {
      std::string text(1 + random() % 4, 'a');
      for (char& c : text) c = static_cast<char>('a' + random() % 3);
      if (std::none_of(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.text == text; })) {
        pieces.push_back({text, -static_cast<double>(random() % 64)});
      }
    }
    const auto search = make_search<double>(pieces);
    std::string text(random() % 30, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 4);
    std::vector<double> best(text.size() + 1, -1e9);
    best[0] = 0;
    for (size_t begin = 0; begin < text.size(); ++begin) {
      best[begin + 1] = std::max(best[begin + 1], best[begin] - 20);
      for (const Piece& piece : pieces) {
        if (!std::string_view(text).substr(begin).starts_with(piece.text)) continue;
        const size_t end = begin + piece.text.size();
        best[end] = std::max(best[end], best[begin] + piece.score);
      }
    }
    double score = 0;
    std::string covered;
    for (const auto& [piece, id] : cut(search, text)) {
      score += id == 0 ? -20 : pieces[static_cast<size_t>(id)].score;
      covered += piece;
    }
    EXPECT_EQ(covered, text);
    // An unknown character is only offered where no piece of one character stands.
    EXPECT_LE(score, best.back());
    const bool has_cheap_character = std::any_of(pieces.begin() + 1, pieces.end(), [](const Piece& piece) {
      return piece.text.size() == 1 && piece.score < -20;
    });
    if (!has_cheap_character) {
      EXPECT_EQ(score, best.back());
    }
  }
}

TEST(UnigramTest, AMegabyteTakesLessThanASecond) {
  std::vector<Piece> pieces = {{"<unk>", 0}};
  for (size_t length = 1; length <= 64; ++length) pieces.push_back({std::string(length, 'a'), -1.0});
  const auto search = make_search<float>(pieces);
  const double start = cpu_seconds();
  EXPECT_EQ(cut(search, std::string(1'000'000, 'a')).size(), 15625u);
  EXPECT_LT(cpu_seconds() - start, kSlowness);
}

}  // namespace
}  // namespace transept
