// Converts text to ids and back. Immutable after loading, so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace transept {

// The vocabularies of the two sides differ with Marian and with character tables; elsewhere both sides are one.
enum class TokenizerSide : uint8_t { kEncoder, kDecoder };

struct EncodeOptions {
  bool add_special_tokens = true;
  TokenizerSide side = TokenizerSide::kEncoder;
  std::string_view source_lang = {};  // "" : the tokenizer's default
  std::string_view target_lang = {};
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Encodes a text. Special-token strings in it become their ids (not with character tables). Takes any bytes: invalid
  // UTF-8 is read as U+FFFD. Errors: kInvalidArgument: an unknown language (lists known ones), a text or word that is
  // too long; kResourceExhausted: the tokenizer's file makes the text too long, or its regular expressions take too
  // long.
  virtual StatusOr<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const = 0;

  // Appends the bytes that `token_id` adds to a text whose tokens so far are `previous` (byte-level: independent of
  // them). The bytes may end inside a character: IncrementalDetokenizer holds them back. Ids out of range add nothing.
  // `previous` is empty at the very beginning, where SentencePiece drops the space of a word start.
  virtual void append_bytes(std::span<const int32_t> previous, int32_t token_id, std::string& out) const = 0;

  // Bytes that are not UTF-8 become one U+FFFD each (true: byte tokens of SentencePiece), or one for each maximal
  // invalid piece (false: byte-level vocabularies).
  virtual bool replaces_each_byte() const { return false; }

  // Appends the end that a text has only while no token follows `token_ids` (BlenderbotSmall's "@@").
  virtual void append_end(std::span<const int32_t> /*token_ids*/, std::string& /*out*/) const {}

  // Returns the spelling of a token in the vocabulary of the decoder's side; "" if there is none of that id.
  virtual std::string token_to_string(int32_t token_id) const = 0;
  // The same for either side (character tables and Marian spell one id differently).
  virtual std::string side_token_to_string(int32_t token_id, TokenizerSide /*side*/) const {
    return token_to_string(token_id);
  }
  // By spelling, on the decoder's side.
  virtual std::optional<int32_t> string_to_token(std::string_view token) const = 0;

  // Returns the token of a language, by the code that the tokenizer's class takes ("fr_XX", "fra_Latn", "fr") or by its
  // spelling. Errors (kInvalidArgument, under `field`'s name): an unknown language (lists known ones); a model without
  // languages; source_lang for Marian, which has only target languages.
  virtual StatusOr<int32_t> language_token(std::string_view /*language*/, std::string_view field) const {
    return field_error(field, "this model has no languages to choose from");
  }

  // Whether skip_special_tokens omits the token.
  virtual bool is_special(int32_t token_id) const = 0;

  // One past the largest id. The model's vocab_size may differ.
  virtual int32_t vocab_size() const = 0;

  // Decodes all ids; ignores those out of range. Bytes that are not UTF-8 become U+FFFD, as replaces_each_byte() says.
  std::string decode(std::span<const int32_t> token_ids, bool skip_special_tokens) const;
};

}  // namespace transept
