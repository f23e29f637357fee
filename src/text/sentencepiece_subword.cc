#include "text/sentencepiece_subword.h"

#include <charconv>
#include <optional>

namespace transept {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // ▁

// "<0x41>" -> 'A'.
std::optional<char> byte_of_piece(std::string_view piece) {
  constexpr std::string_view kBegin = "<0x", kEnd = ">";
  constexpr size_t kDigits = 2;
  if (piece.size() != kBegin.size() + kDigits + kEnd.size() || !piece.starts_with(kBegin) || !piece.ends_with(kEnd)) {
    return std::nullopt;
  }
  const std::string_view digits = piece.substr(kBegin.size(), kDigits);
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return static_cast<char>(byte);
}

class PieceDecoder final : public TokenDecoder {
 public:
  explicit PieceDecoder(bool has_bytes) : has_bytes_(has_bytes) {}

  void append_bytes(std::string_view token, bool is_first, std::string& out) const override {
    if (has_bytes_) {
      if (const std::optional<char> byte = byte_of_piece(token)) {
        out.push_back(*byte);
        return;
      }
    }
    if (is_first && token.starts_with(kSpace)) token.remove_prefix(kSpace.size());
    while (!token.empty()) {
      const size_t space = token.find(kSpace);
      out += token.substr(0, space);
      if (space == std::string_view::npos) return;
      out.push_back(' ');
      token.remove_prefix(space + kSpace.size());
    }
  }

 private:
  bool has_bytes_;
};

// The end of a token such as ">>fra<<" that the text begins with; 0 if it does not.
size_t language_code_end(std::string_view text) {
  constexpr std::string_view kBegin = ">>", kEnd = "<<";
  if (!text.starts_with(kBegin)) return 0;
  const size_t end = text.find(kEnd);
  return end == std::string_view::npos ? 0 : end + kEnd.size();
}

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

std::unique_ptr<TokenDecoder> SentencePieceSubword::make_decoder() const {
  bool has_bytes = false;
  for (int32_t i = 0; i < parts_.pieces->num_pieces() && !has_bytes; ++i) {
    has_bytes = parts_.pieces->type(i) == SentencePieceModel::PieceType::kByte;
  }
  return std::make_unique<PieceDecoder>(has_bytes);
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
