#include "text/subword/vocabulary.h"

#include <algorithm>

#include "base/utf8.h"

namespace transept {

StatusOr<Vocabulary> Vocabulary::parse(const JsonField& field) {
  RETURN_IF_ERROR(field.expect_object());
  const Json::Object& entries = field.json().as_object();
  if (entries.size() > static_cast<size_t>(kMaxVocabSize)) {
    return field.error(str_cat(entries.size(), " tokens are more than the ", kMaxVocabSize, " allowed"));
  }
  std::vector<Token> tokens;
  tokens.reserve(entries.size());
  for (const auto& [token, id] : entries) {
    // The path of the field is only built for errors: there may be a million entries.
    if (!id.is_int() || id.as_int() < 0 || id.as_int() >= kMaxVocabSize) {
      return field.member(token, id).error(str_cat("expected an id from 0 to ", kMaxVocabSize - 1));
    }
    tokens.push_back({token, static_cast<int32_t>(id.as_int())});
  }
  Vocabulary vocabulary = from_tokens(tokens);
  for (const Token& token : tokens) {
    if (vocabulary.token(token.id) != token.text) return field.error(str_cat("two tokens share the id ", token.id));
  }
  return vocabulary;
}

Vocabulary Vocabulary::from_tokens(std::span<const Token> tokens) {
  size_t num_characters = 0;
  int32_t end_id = 0;
  for (const Token& token : tokens) {
    num_characters += token.text.size();
    end_id = std::max(end_id, token.id + 1);
  }
  Vocabulary vocabulary;
  vocabulary.characters_.reserve(num_characters);
  vocabulary.by_id_.resize(static_cast<size_t>(end_id));
  vocabulary.by_token_.reserve(tokens.size());
  for (const auto& [text, id] : tokens) {
    Entry& entry = vocabulary.by_id_[static_cast<size_t>(id)];
    if (entry.used) continue;
    std::vector<char>& characters = vocabulary.characters_;
    entry = {
        .offset = static_cast<uint32_t>(characters.size()), .length = static_cast<uint32_t>(text.size()), .used = true};
    characters.insert(characters.end(), text.begin(), text.end());  // within what was reserved: nothing moves
    vocabulary.are_texts_unique_ &=
        vocabulary.by_token_.emplace(std::string_view(characters.data() + entry.offset, entry.length), id).second;
  }
  return vocabulary;
}

StatusOr<Vocabulary> Vocabulary::from_list(std::span<const std::string_view> tokens) {
  if (tokens.size() > static_cast<size_t>(kMaxVocabSize)) {
    return invalid_argument(tokens.size(), " tokens are more than the ", kMaxVocabSize, " allowed");
  }
  std::vector<Token> last_first;
  last_first.reserve(tokens.size());
  for (size_t id = tokens.size(); id > 0; --id) last_first.push_back({tokens[id - 1], static_cast<int32_t>(id - 1)});
  return from_tokens(last_first);
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) return std::nullopt;
  return found->second;
}

bool Vocabulary::is_only_token(int32_t id, std::string_view left, std::string_view right) const {
  const std::string_view text = token(id);
  return are_texts_unique_ && contains(id) && text.size() == left.size() + right.size() && text.starts_with(left) &&
         text.ends_with(right);
}

std::string_view Vocabulary::token(int32_t id) const {
  if (!contains(id)) return {};
  const Entry& entry = by_id_[static_cast<size_t>(id)];
  return {characters_.data() + entry.offset, entry.length};
}

}  // namespace transept
