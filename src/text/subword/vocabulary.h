// Tokens and their ids, as vocab.json spells them. Immutable, so thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"

namespace transept {

// std::hash, because Debian's Abseil does not hash std::string_view.
struct StringViewHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

class Vocabulary final {
 public:
  // Parses {"token": id, ...}. Errors: an id that is not from 0 to kMaxVocabSize - 1, or that two tokens share; more
  // than kMaxVocabSize tokens.
  static StatusOr<Vocabulary> parse(const JsonField& field);
  // The id of a token is its index; of equal tokens find() returns the last. Errors: more than kMaxVocabSize.
  static StatusOr<Vocabulary> from_list(std::span<const std::string_view> tokens);

  struct Token {
    std::string_view text;
    int32_t id;
  };
  // Of equal texts, and of equal ids, the first counts. REQUIRES: ids from 0 to kMaxVocabSize - 1.
  static Vocabulary from_tokens(std::span<const Token> tokens);

  std::optional<int32_t> find(std::string_view token) const;

  // "" if there is no token of that id.
  std::string_view token(int32_t id) const;
  bool contains(int32_t id) const { return id >= 0 && id < end_id() && by_id_[static_cast<size_t>(id)].used; }

  // Whether find(left + right) is `id`: a cheap check of a guess. Also false if any two tokens have equal texts.
  bool is_only_token(int32_t id, std::string_view left, std::string_view right) const;

  // The number of different texts.
  int32_t num_tokens() const { return static_cast<int32_t>(by_token_.size()); }
  // One past the largest id.
  int32_t end_id() const { return static_cast<int32_t>(by_id_.size()); }

 private:
  struct Entry {
    uint32_t offset = 0, length = 0;  // into characters_
    bool used = false;
  };

  std::vector<char> characters_;
  std::vector<Entry> by_id_;
  absl::flat_hash_map<std::string_view, int32_t, StringViewHash, std::equal_to<>> by_token_;
  bool are_texts_unique_ = true;
};

}  // namespace transept
