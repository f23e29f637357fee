#include "text/sentencepiece/sentencepiece_pieces.h"

#include <cmath>

#include "base/utf8.h"
#include "text/subword/byte_token.h"

namespace transept {

StatusOr<SentencePiecePieces> SentencePiecePieces::create(const SentencePieceFile& file) {
  SentencePiecePieces pieces;
  pieces.byte_fallback_ = file.byte_fallback;
  pieces.byte_ids_.fill(-1);
  size_t num_characters = 0;
  for (const SentencePieceFile::Piece& piece : file.pieces) num_characters += piece.text.size();
  pieces.characters_.reserve(num_characters);
  pieces.pieces_.reserve(file.pieces.size());
  pieces.ids_.reserve(file.pieces.size());
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    const Status status = pieces.add(piece);
    if (!status.ok()) return with_prefix(status, str_cat("pieces[", pieces.size(), "]"));
  }
  if (pieces.unk_id_ < 0) return invalid_argument("pieces: none of them is the unknown piece");
  if (!pieces.byte_fallback_) return pieces;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (pieces.byte_ids_[byte] < 0) {
      return invalid_argument("pieces: lack ", byte_token(static_cast<uint8_t>(byte)),
                              ", which trainer_spec.byte_fallback needs");
    }
  }
  return pieces;
}

Status SentencePiecePieces::add(const SentencePieceFile::Piece& piece) {
  const std::string_view text = piece.text;
  const int32_t id = size();
  if (text.empty()) return invalid_argument("piece: is empty");
  if (text.size() > kMaxPieceBytes) {
    return invalid_argument("piece: ", text.size(), " bytes are more than the ", kMaxPieceBytes, " allowed");
  }
  if (!is_valid_utf8(text)) return invalid_argument("piece: is not valid UTF-8");
  if (!std::isfinite(piece.score)) return invalid_argument("score: is not a finite number");
  if (piece.type == Type::kUnknown) {
    if (unk_id_ >= 0) return invalid_argument("type: piece ", unk_id_, " is the unknown piece already");
    unk_id_ = id;
  }
  if (piece.type == Type::kByte) {
    if (!byte_fallback_) return invalid_argument("type: is a byte, but trainer_spec.byte_fallback is not set");
    const std::optional<uint8_t> byte = parse_byte_token(text);
    if (!byte.has_value() || byte_token(*byte) != text) {
      return invalid_argument("piece: \"", text, "\" is of type byte, but not written like <0x0A>");
    }
    byte_ids_[*byte] = id;
  }
  const size_t offset = characters_.size();
  characters_.insert(characters_.end(), text.begin(), text.end());
  pieces_.push_back(
      {.text = std::string_view(characters_.data() + offset, text.size()), .score = piece.score, .type = piece.type});
  const auto [other, is_new] = ids_.emplace(pieces_.back().text, id);
  if (!is_new) {
    pieces_.pop_back();
    return invalid_argument("piece: \"", text, "\" is piece ", other->second, " already");
  }
  return ok_status();
}

std::optional<int32_t> SentencePiecePieces::find(std::string_view text) const {
  const auto found = ids_.find(text);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace transept
