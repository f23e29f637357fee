#include "text/subword/unigram_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "text/subword/byte_token.h"

namespace transept {
namespace {

constexpr double kUnknownPenalty = 10;

// ["▁the", -3.2].
struct ScoredPiece {
  std::string_view text;
  double score;
};

// Errors do not name the field: there may be a million of them.
StatusOr<ScoredPiece> parse_piece(const Json& json) {
  if (!json.is_array() || json.as_array().size() != 2 || !json.as_array()[0].is_string() ||
      !json.as_array()[1].is_number()) {
    return invalid_argument("expected a piece and its score");
  }
  const ScoredPiece piece = {json.as_array()[0].as_string(), json.as_array()[1].as_double()};
  if (piece.text.size() > UnigramModel::kMaxPieceBytes) {
    return invalid_argument(piece.text.size(), " bytes are more than the ", UnigramModel::kMaxPieceBytes, " allowed");
  }
  if (!std::isfinite(piece.score)) return invalid_argument("the score is not a finite number");
  return piece;
}

}  // namespace

UnigramModel::UnigramModel(Vocabulary vocabulary, Search search, bool byte_fallback)
    : vocabulary_(std::move(vocabulary)), search_(std::move(search)), byte_fallback_(byte_fallback) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    id_of_byte_[byte] = vocabulary_.find(byte_token(static_cast<uint8_t>(byte))).value_or(-1);
  }
}

StatusOr<std::unique_ptr<UnigramModel>> UnigramModel::parse(const JsonField& model) {
  const JsonField list = model.member("vocab");
  RETURN_IF_ERROR(list.expect_list());
  const size_t size = list.json().as_array().size();
  std::vector<std::string_view> texts(size);
  Search::Pieces pieces;
  pieces.scores.resize(size);
  double least = std::numeric_limits<double>::infinity();
  std::vector<PieceTrie::Entry> entries(size);
  for (size_t i = 0; i < size; ++i) {
    const StatusOr<ScoredPiece> piece = parse_piece(list.json().as_array()[i]);
    if (!piece.ok()) return list.item(i).error(error_message(piece.status()));
    texts[i] = piece->text;
    pieces.scores[i] = piece->score;
    least = std::min(least, piece->score);
    entries[i] = {piece->text, static_cast<int32_t>(i)};
  }
  StatusOr<Vocabulary> vocabulary = Vocabulary::from_list(texts);
  if (!vocabulary.ok()) return list.error(error_message(vocabulary.status()));
  pieces.trie = PieceTrie(std::move(entries));
  pieces.unk_score = least - kUnknownPenalty;
  if (const JsonField unk_id = model.member("unk_id"); unk_id.present()) {
    ASSIGN_OR_RETURN(pieces.unk_id, unk_id.as_token_id());
    if (static_cast<size_t>(*pieces.unk_id) >= size) return unk_id.error(str_cat("there are only ", size, " pieces"));
  }
  ASSIGN_OR_RETURN(const bool byte_fallback, model.member("byte_fallback").bool_or(false));
  return std::unique_ptr<UnigramModel>(
      new UnigramModel(std::move(vocabulary).value(), Search(std::move(pieces)), byte_fallback));
}

Status UnigramModel::append_ids(const Words& words, std::vector<int32_t>& ids) const {
  Search::Workspace work;
  for (const TextRange word : words.ranges) {
    const std::string_view text = word.of(words.text);
    TextRange unknown;  // a run that may go on
    const auto end_unknown = [&] {
      if (unknown.size() > 0) append_unknown(unknown.of(text), ids);
      unknown = {};
    };
    const bool done = search_.cut(text, work, [&](TextRange piece, int32_t id) {
      if (id == search_.unk_id()) {
        unknown = {unknown.size() > 0 ? unknown.begin : piece.begin, piece.end};
      } else {
        end_unknown();
        ids.push_back(id);
      }
    });
    if (!done)
      return invalid_argument("the text has a character that is in no token, and this tokenizer has no unk_id");
    end_unknown();
  }
  return ok_status();
}

// A run of unknown characters is looked up as one: together they may be a token that was less likely than its parts.
void UnigramModel::append_unknown(std::string_view run, std::vector<int32_t>& ids) const {
  if (const std::optional<int32_t> id = vocabulary_.find(run)) {
    ids.push_back(*id);
    return;
  }
  const auto id_of = [&](char c) { return id_of_byte_[static_cast<uint8_t>(c)]; };
  if (byte_fallback_ && std::all_of(run.begin(), run.end(), [&](char c) { return id_of(c) >= 0; })) {
    for (const char c : run) ids.push_back(id_of(c));
  } else {
    ids.push_back(*search_.unk_id());
  }
}

}  // namespace transept
