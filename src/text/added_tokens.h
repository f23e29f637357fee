// Tokens on top of a model's vocabulary: found in a text before the model sees it, each with its rules about what may
// stand beside it. Source: tokenizer/added_vocabulary.rs of Hugging Face's tokenizers.
// Filled by a loader, then immutable, so thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/normalizer.h"
#include "text/text_range.h"
#include "text/token_matcher.h"
#include "text/vocabulary.h"

namespace transept {

struct AddedToken {
  std::string content;
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space behind it along
  bool normalized = false;   // looked for in the normalised text
  bool special = false;      // left out by skip_special_tokens

  // The token as files write it: a string (`defaults` gives the rest), or an object with these fields.
  static StatusOr<AddedToken> parse(const JsonField& field, AddedToken defaults);
};

bool is_timestamp_token(std::string_view content);

class AddedTokens final {
 public:
  // A part of a text: one added token, or what stands between them (token_id kText).
  struct Segment {
    TextRange range;
    int32_t token_id;
  };
  static constexpr int32_t kText = -1;

  // The id is the one in the vocabulary, if the content stands there, else `wanted_id`, else the next free one. A
  // content that is there already gets the new rules and stays special if it was. An empty one is ignored. Errors:
  // longer than kMaxBytes; no id left; `wanted_id` belongs to another token. They do not name the field.
  Status add(AddedToken token, const Vocabulary& vocabulary, std::optional<int32_t> wanted_id = std::nullopt);
  static constexpr size_t kMaxBytes = 512;  // bounds the time of a search

  // Marks a token as special that is there already. REQUIRES: contains(content).
  void mark_special(std::string_view content);

  bool contains(std::string_view content) const { return index_of_content_.contains(std::string(content)); }

  // To be called when all are added. Errors: those of the normalizer.
  Status finish(const Normalizer& normalizer);

  // Appends the segments of a text that cover it, by the tokens that are looked for before normalisation, or after it.
  // Strip rules can make segments overlap, as they do in the reference.
  void split_raw(std::string_view text, std::vector<Segment>& out) const { split(text, raw_, out); }
  void split_normalized(std::string_view text, std::vector<Segment>& out) const { split(text, normalized_, out); }

  const AddedToken* find(int32_t id) const;
  std::optional<int32_t> find(std::string_view content) const;
  // One past the largest id; 0 if there are none.
  int32_t end_id() const { return end_id_; }

 private:
  struct Entry {
    AddedToken token;
    int32_t id;
  };

  void split(std::string_view text, const TokenMatcher& matcher, std::vector<Segment>& out) const;

  std::vector<Entry> entries_;  // in the order added
  absl::flat_hash_map<std::string, size_t> index_of_content_;
  absl::flat_hash_map<int32_t, size_t> index_of_id_;
  int32_t end_id_ = 0;
  TokenMatcher raw_, normalized_;  // values are indices of entries_
};

}  // namespace transept
