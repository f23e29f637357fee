// SentencePiece's unigram model.
#include <algorithm>
#include <cfloat>

#include "text/sentencepiece/sentencepiece_cutter.h"
#include "text/subword/unigram.h"

namespace transept {
namespace {

using Type = SentencePieceType;
using Search = UnigramSearch<float>;

class UnigramCutter final : public SentencePieceCutter {
 public:
  explicit UnigramCutter(Search search) : search_(std::move(search)) {}

  Status cut(std::string_view text, std::vector<Cut>& cuts) const override {
    Search::Workspace work;
    search_.cut(text, work, [&](TextRange range, int32_t id) { cuts.push_back({range, id}); });
    return ok_status();
  }

 private:
  Search search_;
};

}  // namespace

std::unique_ptr<SentencePieceCutter> make_unigram_cutter(const SentencePiecePieces& pieces) {
  constexpr float kUnknownPenalty = 10;
  float least = FLT_MAX;
  for (int32_t id = 0; id < pieces.size(); ++id) {
    if (pieces.type(id) == Type::kNormal) least = std::min(least, pieces.score(id));
  }
  Search::Pieces found;
  std::vector<PieceTrie::Entry> entries;
  found.scores.resize(static_cast<size_t>(pieces.size()));
  for (int32_t id = 0; id < pieces.size(); ++id) {
    const Type type = pieces.type(id);
    if (type != Type::kNormal && type != Type::kUserDefined) continue;
    entries.push_back({pieces.text(id), id});
    // A user-defined piece wins over any cut of the same bytes, a long one over several. (Before 0.2.2 the reference
    // had another rule, by the greatest score; only overlapping symbols show the difference.)
    const auto symbol_score = static_cast<float>(0.1 * static_cast<double>(pieces.text(id).size() - 1));
    found.scores[static_cast<size_t>(id)] = type == Type::kNormal ? pieces.score(id) : symbol_score;
  }
  found.trie = PieceTrie(std::move(entries));
  found.unk_score = least - kUnknownPenalty;
  found.unk_id = pieces.unk_id();
  return std::make_unique<UnigramCutter>(Search(std::move(found)));
}

PieceTrie user_defined_pieces(const SentencePiecePieces& pieces) {
  std::vector<PieceTrie::Entry> entries;
  for (int32_t id = 0; id < pieces.size(); ++id) {
    if (pieces.type(id) == Type::kUserDefined) entries.push_back({pieces.text(id), id});
  }
  return PieceTrie(std::move(entries));
}

}  // namespace transept
