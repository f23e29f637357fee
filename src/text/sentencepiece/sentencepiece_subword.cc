#include "text/sentencepiece/sentencepiece_subword.h"

#include <optional>

#include "text/subword/byte_token.h"
#include "text/subword/language_codes.h"

namespace transept {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // ▁

std::string_view without_spaces(std::string_view token) {
  while (token.starts_with(kSpace)) token.remove_prefix(kSpace.size());
  return token;
}

class PieceDecoder final : public TokenDecoder {
 public:
  PieceDecoder(bool has_bytes, bool trims) : has_bytes_(has_bytes), trims_(trims) {}

  void append_bytes(const EarlierTokens& earlier, std::string_view token, std::string& out) const override {
    if (trims_) {
      if (without_spaces(token).empty()) return;
      if (!append_spaces_before(earlier, out)) token = without_spaces(token);
    } else if (token.starts_with(kSpace) && earlier.none()) {
      token.remove_prefix(kSpace.size());
    }
    const std::optional<uint8_t> byte = has_bytes_ ? parse_byte_token(token) : std::nullopt;
    if (byte.has_value()) {
      out.push_back(static_cast<char>(*byte));
    } else {
      append_spelled(token, out);
    }
  }

  bool replaces_each_byte() const override { return has_bytes_; }

 private:
  static void append_spelled(std::string_view token, std::string& out) {
    while (!token.empty()) {
      const size_t space = token.find(kSpace);
      out += token.substr(0, space);
      if (space == std::string_view::npos) return;
      out.push_back(' ');
      token.remove_prefix(space + kSpace.size());
    }
  }

  // Tokens of nothing but spaces wait until something follows, so that a text does not end with them; nor does it begin
  // with them. Whether something stands before them.
  static bool append_spaces_before(const EarlierTokens& earlier, std::string& out) {
    size_t first = earlier.ids.size();
    while (first > 0 && without_spaces(earlier.spelling(earlier.ids[first - 1])).empty()) --first;
    if (first == 0) return false;
    for (; first < earlier.ids.size(); ++first) append_spelled(earlier.spelling(earlier.ids[first]), out);
    return true;
  }

  bool has_bytes_, trims_;
};

}  // namespace

SentencePieceSubword::SentencePieceSubword(Parts parts) : parts_(std::move(parts)) {
  if (!parts_.id_of_piece.empty()) return;
  vocabulary_knows_more_ = true;
  parts_.id_of_piece.resize(static_cast<size_t>(parts_.pieces->num_pieces()));
  for (int32_t i = 0; i < parts_.pieces->num_pieces(); ++i) {
    parts_.id_of_piece[static_cast<size_t>(i)] =
        parts_.vocabulary.find(parts_.pieces->piece(i)).value_or(parts_.unk_id);
  }
}

std::unique_ptr<TokenDecoder> SentencePieceSubword::make_decoder(bool trims) const {
  bool has_bytes = false;
  for (int32_t i = 0; i < parts_.pieces->num_pieces() && !has_bytes; ++i) {
    has_bytes = parts_.pieces->type(i) == SentencePieceModel::PieceType::kByte;
  }
  return std::make_unique<PieceDecoder>(has_bytes, trims);
}

SentencePieceSubword::Agreement SentencePieceSubword::agreement() const {
  Agreement found;
  for (int32_t i = 0; i < parts_.pieces->num_pieces(); ++i) {
    if (parts_.pieces->type(i) != SentencePieceModel::PieceType::kNormal) continue;
    ++found.all;
    if (parts_.vocabulary.find(parts_.pieces->piece(i)).has_value()) ++found.known;
  }
  return found;
}

Status SentencePieceSubword::append_ids(const Words& words, std::vector<int32_t>& ids) const {
  for (const TextRange range : words.ranges) {
    std::string_view text = range.of(words.text);
    if (parts_.language_code_first) {
      const size_t end = language_code_end(text);
      if (end > 0) ids.push_back(parts_.vocabulary.find(text.substr(0, end)).value_or(parts_.unk_id));
      text.remove_prefix(end);
    }
    RETURN_IF_ERROR(append_text_ids(text, ids));
  }
  return ok_status();
}

Status SentencePieceSubword::append_text_ids(std::string_view text, std::vector<int32_t>& ids) const {
  const SentencePieceModel& model = *parts_.pieces;
  const auto id_of = [&](int32_t piece) { return parts_.id_of_piece[static_cast<size_t>(piece)]; };
  if (!vocabulary_knows_more_) {
    const size_t begin = ids.size();
    RETURN_IF_ERROR(model.append_ids(text, ids));
    for (size_t i = begin; i < ids.size(); ++i) ids[i] = id_of(ids[i]);
    return ok_status();
  }
  std::vector<SentencePieceModel::Piece> pieces;
  RETURN_IF_ERROR(model.append_pieces(text, pieces));
  for (const SentencePieceModel::Piece& piece : pieces) {
    ids.push_back(piece.id == model.unk_id() ? parts_.vocabulary.find(piece.text).value_or(parts_.unk_id)
                                             : id_of(piece.id));
  }
  return ok_status();
}

}  // namespace transept
