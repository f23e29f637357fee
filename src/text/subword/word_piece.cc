#include "text/subword/word_piece.h"

#include <string>

namespace transept {
namespace {

bool has_more_characters(std::string_view word, int64_t limit) {
  if (static_cast<int64_t>(word.size()) <= limit) return false;
  int64_t count = 0;
  for (const char c : word) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count > limit;
}

}  // namespace

StatusOr<std::unique_ptr<WordPieceModel>> WordPieceModel::parse(const JsonField& model) {
  const JsonField vocab = model.member("vocab");
  ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::parse(vocab));
  ASSIGN_OR_RETURN(const std::string prefix, model.member("continuing_subword_prefix").string_or("##"));
  ASSIGN_OR_RETURN(const std::string unk, model.member("unk_token").string_or("[UNK]"));
  int64_t max_characters = 100;
  if (const JsonField limit = model.member("max_input_chars_per_word"); limit.present()) {
    if (!limit.json().is_int() || limit.json().as_int() < 0) return limit.error("expected a whole number from 0");
    max_characters = limit.json().as_int();
  }
  std::vector<PieceTrie::Entry> first, rest;
  for (int32_t id = 0; id < vocabulary.end_id(); ++id) {
    const std::string_view text = vocabulary.token(id);
    if (text.empty()) continue;
    if (text.size() > kMaxPieceBytes) {
      return vocab.error(
          str_cat("token ", id, " has ", text.size(), " bytes, more than the ", kMaxPieceBytes, " allowed"));
    }
    first.push_back({text, id});
    if (text.size() > prefix.size() && text.starts_with(prefix)) rest.push_back({text.substr(prefix.size()), id});
  }
  PieceTrie of_first(std::move(first)), of_rest(std::move(rest));
  const std::optional<int32_t> unk_id = vocabulary.find(unk);
  return std::unique_ptr<WordPieceModel>(
      new WordPieceModel(std::move(vocabulary), std::move(of_first), std::move(of_rest), unk_id, max_characters));
}

Status WordPieceModel::append_ids(const Words& words, std::vector<int32_t>& ids) const {
  for (const TextRange range : words.ranges) {
    const std::string_view word = range.of(words.text);
    const size_t before = ids.size();
    if (!has_more_characters(word, max_characters_) && append_pieces(word, ids)) continue;
    if (!unk_id_.has_value()) {
      return invalid_argument("the text has a word that is in no tokens, and this tokenizer has no unk_token");
    }
    ids.resize(before);
    ids.push_back(*unk_id_);
  }
  return ok_status();
}

// False, possibly after some pieces: nothing in the vocabulary goes on.
bool WordPieceModel::append_pieces(std::string_view word, std::vector<int32_t>& ids) const {
  for (size_t begin = 0; begin < word.size();) {
    size_t longest = 0;
    int32_t piece = 0;
    (begin == 0 ? first_ : rest_).for_each_prefix(word.substr(begin), [&](size_t length, int32_t id) {
      longest = length;  // they come shortest first
      piece = id;
    });
    if (longest == 0) return false;
    ids.push_back(piece);
    begin += longest;
  }
  return true;
}

}  // namespace transept
