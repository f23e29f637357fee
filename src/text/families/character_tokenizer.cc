#include "text/families/character_tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/families/tokenizer_loader.h"
#include "text/unicode/unicode.h"

namespace transept {

StatusOr<CharacterTokenizer::Table> CharacterTokenizer::Table::parse(std::string_view name, const Json& characters,
                                                                     int64_t vocab_size) {
  const auto refuse = [&](const auto&... reason) {
    return with_param(invalid_argument("config.json: ", name, ": ", reason...), name);
  };
  if (characters.is_null()) return refuse("is missing");
  if (!characters.is_string()) return refuse("expected a string of characters, got ", characters.kind_name());
  const std::string& text = characters.as_string();
  if (!is_valid_utf8(text)) return refuse("is not valid UTF-8");
  Table table;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const uint32_t c = next_code_point(text, end);
    // Of a character that stands there twice the last place counts, so that the four "_" of the special ids give "_"
    // the id of an unknown character.
    table.id_of[c] = static_cast<int32_t>(table.characters.size());
    table.characters.push_back(text.substr(begin, end - begin));
  }
  const int64_t count = static_cast<int64_t>(table.characters.size());
  if (count <= kFirstCharacter) {
    return refuse("has ", count, " characters, and none behind the ", kFirstCharacter, " of the special tokens");
  }
  if (vocab_size > 0 && count > vocab_size) {
    return refuse("has ", count, " characters, more than the vocabulary of ", vocab_size);
  }
  return table;
}

std::string CharacterTokenizer::Table::spell(int32_t token_id) const {
  if (token_id < 0 || static_cast<size_t>(token_id) >= characters.size()) return {};
  return characters[static_cast<size_t>(token_id)];
}

StatusOr<std::unique_ptr<CharacterTokenizer>> CharacterTokenizer::create(const TokenizerHints& hints) {
  auto tokenizer = std::make_unique<CharacterTokenizer>();
  ASSIGN_OR_RETURN(tokenizer->graphemes_, Table::parse("grapheme_chars", hints.grapheme_chars, hints.vocab_size));
  ASSIGN_OR_RETURN(tokenizer->phonemes_, Table::parse("phoneme_chars", hints.phoneme_chars, hints.vocab_size));
  const size_t longest = std::max(tokenizer->graphemes_.characters.size(), tokenizer->phonemes_.characters.size());
  tokenizer->vocab_size_ = static_cast<int32_t>(std::max(hints.vocab_size, static_cast<int64_t>(longest)));
  tokenizer->bos_id_ = hints.bos_token_id.value_or(tokenizer->bos_id_);
  tokenizer->eos_id_ = hints.eos_token_id.value_or(tokenizer->eos_id_);
  return tokenizer;
}

StatusOr<std::vector<int32_t>> CharacterTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (!options.source_lang.empty()) return field_error("source_lang", "this model has no languages to choose from");
  if (!options.target_lang.empty()) return field_error("target_lang", "this model has no languages to choose from");
  const Table& characters = table(options.side);
  const std::string valid = sanitize_utf8(text);
  std::vector<int32_t> ids;
  ids.reserve(valid.size() + 2);
  if (options.add_special_tokens) ids.push_back(bos_id_);
  for (size_t i = 0; i < valid.size();) {
    const auto found = characters.id_of.find(next_code_point(valid, i));
    ids.push_back(found == characters.id_of.end() ? kUnknown : found->second);
  }
  if (options.add_special_tokens) ids.push_back(eos_id_);
  return ids;
}

void CharacterTokenizer::append_bytes(std::span<const int32_t> /*previous*/, int32_t token_id, std::string& out) const {
  if (token_id < kFirstCharacter || token_id >= vocab_size_) return;
  const std::string character = phonemes_.spell(token_id);
  out += character.empty() ? "\xEF\xBF\xBD" : character;
}

std::optional<int32_t> CharacterTokenizer::string_to_token(std::string_view token) const {
  if (token.empty() || !is_valid_utf8(token)) return std::nullopt;
  size_t length = 0;
  const auto found = phonemes_.id_of.find(next_code_point(token, length));
  if (length != token.size() || found == phonemes_.id_of.end()) return std::nullopt;
  return found->second;
}

StatusOr<std::unique_ptr<Tokenizer>> make_character_tokenizer(const TokenizerHints& hints) {
  return CharacterTokenizer::create(hints);
}

}  // namespace transept
