#include "text/vocabulary.h"

#include <algorithm>

#include "base/utf8.h"

namespace transept {

std::string quoted_token(std::string_view token) {
  constexpr size_t kShown = 60;
  return str_cat("\"", sanitize_utf8(token.substr(0, kShown)), token.size() > kShown ? "..." : "", "\"");
}

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
    if (!vocabulary.by_id_[static_cast<size_t>(id)].used) vocabulary.add(text, id, /*replace=*/false);
  }
  return vocabulary;
}

StatusOr<Vocabulary> Vocabulary::from_list(std::span<const std::string_view> tokens) {
  if (tokens.size() > static_cast<size_t>(kMaxVocabSize)) {
    return invalid_argument(tokens.size(), " tokens are more than the ", kMaxVocabSize, " allowed");
  }
  size_t num_characters = 0;
  for (const std::string_view token : tokens) num_characters += token.size();
  Vocabulary vocabulary;
  vocabulary.characters_.reserve(num_characters);
  vocabulary.by_id_.resize(tokens.size());
  vocabulary.by_token_.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) vocabulary.add(tokens[id], static_cast<int32_t>(id), /*replace=*/true);
  return vocabulary;
}

// REQUIRES: room in characters_, so that nothing moves.
void Vocabulary::add(std::string_view token, int32_t id, bool replace) {
  const auto offset = static_cast<uint32_t>(characters_.size());
  by_id_[static_cast<size_t>(id)] = {.offset = offset, .length = static_cast<uint32_t>(token.size()), .used = true};
  characters_.insert(characters_.end(), token.begin(), token.end());
  const std::string_view kept(characters_.data() + offset, token.size());
  if (replace) {
    by_token_.insert_or_assign(kept, id);
  } else {
    by_token_.emplace(kept, id);
  }
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) return std::nullopt;
  return found->second;
}

std::string_view Vocabulary::token(int32_t id) const {
  if (!contains(id)) return {};
  const Entry& entry = by_id_[static_cast<size_t>(id)];
  return {characters_.data() + entry.offset, entry.length};
}

}  // namespace transept
