// Added tokens: tokens on top of a model's vocabulary. They are found in a text before the model sees it, each by its
// own rules about its neighbours. Source: tokenizer/added_vocabulary.rs of Hugging Face's tokenizers.
// A loader fills it. Immutable after that, so thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json_field.h"
#include "text/pipeline/normalizer.h"
#include "text/subword/token_matcher.h"
#include "text/subword/vocabulary.h"
#include "text/unicode/text_range.h"

namespace transept {

struct AddedToken {
  std::string content;
  bool single_word = false;  // never matches inside a word
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // includes the white space after it
  bool normalized = false;   // matches in the normalised text
  bool special = false;      // omitted by skip_special_tokens

  // Parses a token as files write it: a string (the rest comes from `defaults`), or an object with these fields. Errors
  // name the field: an object without content, or a value of another kind.
  static StatusOr<AddedToken> parse(const JsonField& field, AddedToken defaults);
};

// Whether `content` is a timestamp of Whisper, such as <|12.34|>. Such tokens are special, whatever their files say.
bool is_timestamp_token(std::string_view content);

class AddedTokens final {
 public:
  // A part of a text: one added token, or text without any (token_id kText).
  struct Segment {
    TextRange range;
    int32_t token_id;
  };
  static constexpr int32_t kText = -1;

  // Adds a token. Its id is the vocabulary's, if the vocabulary has this content; else `wanted_id`; else the next free
  // one. A content that was added before keeps its id, gets the new rules, and stays special if it was. Ignores an
  // empty content. Errors (kInvalidArgument, without the field): a content over kMaxBytes; no id below kMaxVocabSize is
  // left; the id belongs to another token.
  Status add(AddedToken token, const Vocabulary& vocabulary, std::optional<int32_t> wanted_id = std::nullopt);
  static constexpr size_t kMaxBytes = 512;  // bounds the time of a search

  // Marks an added token as special. REQUIRES: contains(content).
  void mark_special(std::string_view content);

  bool contains(std::string_view content) const { return index_of_content_.contains(std::string(content)); }

  // Prepares the search. Call after the last add(), before split_*(). Errors: those of the normalizer.
  Status finish(const Normalizer& normalizer);

  // Appends segments that cover the text: split_raw by the tokens that match before normalisation, split_normalized by
  // those that match after it. Strip rules can make segments overlap, as in the reference. REQUIRES: valid UTF-8.
  void split_raw(std::string_view text, std::vector<Segment>& out) const { split(text, raw_, out); }
  void split_normalized(std::string_view text, std::vector<Segment>& out) const { split(text, normalized_, out); }

  // Null: no added token has this id. Valid until the next add().
  const AddedToken* find(int32_t id) const;
  std::optional<int32_t> find(std::string_view content) const;
  // One past the largest id; 0 without tokens.
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
