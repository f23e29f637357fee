// SentencePiece's byte-pair encoding, whose merges are its pieces.
#include <absl/container/flat_hash_map.h>

#include <optional>
#include <string>

#include "text/sentencepiece/sentencepiece_cutter.h"
#include "text/sentencepiece/sentencepiece_normalizer.h"
#include "text/subword/symbol_merger.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

using PieceType = SentencePieceType;

struct Symbol {
  uint32_t begin, length;
  bool is_whole;  // a user-defined piece: never joined
  int32_t previous = 0, next = 0;
};

// Pieces that were joined although they are not in use, and how many bytes their left half had, the last time.
using LeftHalves = absl::flat_hash_map<std::string_view, uint32_t, StringViewHash, std::equal_to<>>;

class Pairs final {
 public:
  using Symbol = transept::Symbol;
  using Rank = float;
  struct Found {
    float rank;
    int32_t tag;  // the length of both
  };

  Pairs(const SentencePiecePieces& pieces, std::string_view text, LeftHalves& unused)
      : pieces_(pieces), text_(text), unused_(unused) {}

  std::optional<Found> find(const Symbol& left, const Symbol& right) const {
    if (left.is_whole || right.is_whole) return std::nullopt;
    const uint32_t length = left.length + right.length;
    if (length > SentencePiecePieces::kMaxPieceBytes) return std::nullopt;
    const std::string_view both = text_.substr(left.begin, length);
    const std::optional<int32_t> id = pieces_.find(both);
    if (!id.has_value()) return std::nullopt;
    const PieceType type = pieces_.type(*id);
    if (type == PieceType::kControl || type == PieceType::kUnknown || type == PieceType::kByte) return std::nullopt;
    if (type == PieceType::kUnused) unused_.insert_or_assign(both, left.length);
    return Found{-pieces_.score(*id), static_cast<int32_t>(length)};
  }
  bool is_current(const Symbol& left, const Symbol& right, int32_t tag) const {
    return left.length + right.length == static_cast<uint32_t>(tag);
  }
  void join(Symbol& left, Symbol& /*right*/, int32_t tag) const { left.length = static_cast<uint32_t>(tag); }

 private:
  const SentencePiecePieces& pieces_;
  std::string_view text_;
  LeftHalves& unused_;
};

using Merger = SymbolMerger<Pairs>;

class BpeCutter final : public SentencePieceCutter {
 public:
  explicit BpeCutter(const SentencePiecePieces& pieces)
      : pieces_(pieces), user_defined_(user_defined_pieces(pieces)), words_are_apart_(find_whether_words_are_apart()) {}

  Status cut(std::string_view text, std::vector<Cut>& cuts) const override {
    if (text.size() > Merger::kMaxSymbols) return invalid_argument("a text of ", text.size(), " bytes is too long");
    Workspace work;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = words_are_apart_ ? word_end(text, begin) : text.size();
      cut_word(text, {begin, end}, work, cuts);
      begin = end;
    }
    return ok_status();
  }

 private:
  struct Workspace {
    std::vector<Symbol> symbols;
    Merger merger;
    LeftHalves unused;
  };

  // Whether no piece reaches from one word into the next, so that words can be cut one by one: a small queue is a quick
  // one. Unused pieces are taken apart as the last of their kind in the whole text was put together.
  bool find_whether_words_are_apart() const {
    for (int32_t id = 0; id < pieces_.size(); ++id) {
      const std::string_view text = pieces_.text(id);
      if (pieces_.type(id) == PieceType::kUnused) return false;
      const size_t word = std::min(text.find_first_not_of(kSpaceSymbol), text.size());
      if (text.find(kSpaceSymbol, word) != std::string_view::npos) return false;
    }
    return true;
  }

  // The next space symbol behind something else.
  static size_t word_end(std::string_view text, size_t begin) {
    while (text.substr(begin).starts_with(kSpaceSymbol)) begin += kSpaceSymbol.size();
    return std::min(text.find(kSpaceSymbol, begin), text.size());
  }

  void cut_word(std::string_view text, TextRange word, Workspace& work, std::vector<Cut>& cuts) const {
    work.symbols.clear();
    for (size_t begin = word.begin; begin < word.end; begin += work.symbols.back().length) {
      size_t user_defined = 0;
      if (!user_defined_.empty()) {
        user_defined_.for_each_prefix(text.substr(begin), [&](size_t length, int32_t) { user_defined = length; });
      }
      size_t end = begin + user_defined;
      if (user_defined == 0) next_code_point(text, end);
      work.symbols.push_back({.begin = static_cast<uint32_t>(begin),
                              .length = static_cast<uint32_t>(end - begin),
                              .is_whole = user_defined > 0});
    }
    work.unused.clear();
    work.merger.merge(work.symbols, Pairs(pieces_, text, work.unused));
    for (const Symbol& symbol : work.symbols) {
      if (symbol.previous == Merger::kJoined) continue;
      emit(text, {symbol.begin, size_t{symbol.begin} + symbol.length}, work.unused, cuts);
    }
  }

  void emit(std::string_view text, TextRange range, const LeftHalves& unused, std::vector<Cut>& cuts) const {
    const int32_t id = pieces_.find(range.of(text)).value_or(pieces_.unk_id());
    if (pieces_.type(id) == PieceType::kUnused) {
      if (const auto half = unused.find(range.of(text)); half != unused.end()) {
        const size_t middle = range.begin + half->second;
        emit(text, {range.begin, middle}, unused, cuts);
        emit(text, {middle, range.end}, unused, cuts);
        return;
      }
    }
    cuts.push_back({range, id});
  }

  const SentencePiecePieces& pieces_;
  PieceTrie user_defined_;
  bool words_are_apart_;
};

}  // namespace

std::unique_ptr<SentencePieceCutter> make_bpe_cutter(const SentencePiecePieces& pieces) {
  return std::make_unique<BpeCutter>(pieces);
}

}  // namespace transept
