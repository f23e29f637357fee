// Text to ids and back. Immutable after loading, so thread-safe.
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

// Source and target vocabularies may differ (Marian); elsewhere both sides are one.
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

  // Special-token strings in the text become their ids. Any bytes are accepted: invalid UTF-8 is read as U+FFFD.
  // Errors: an unknown language (lists the known ones).
  virtual StatusOr<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const = 0;

  // The bytes that one token adds to a text whose earlier tokens are `previous` (byte-level: independent of it). Bytes
  // may be half a character: IncrementalDetokenizer holds them back. Ids out of range give nothing.
  // `previous` is empty at the very beginning, where SentencePiece drops the space of a word start.
  virtual void append_bytes(std::span<const int32_t> previous, int32_t token_id, std::string& out) const = 0;

  // What becomes of bytes that are no UTF-8: one U+FFFD for each of them (byte tokens of SentencePiece), or one for
  // each maximal invalid piece (byte-level vocabularies).
  virtual bool replaces_each_byte() const { return false; }

  // The bytes that a text ends with when nothing follows `token_ids`, and that anything that follows takes back
  // (BlenderbotSmall's "@@").
  virtual void append_end(std::span<const int32_t> /*token_ids*/, std::string& /*out*/) const {}

  // How the vocabulary file spells a token; "" if there is none of that id.
  virtual std::string token_to_string(int32_t token_id) const = 0;
  // The same where the two sides spell one id differently (character tables).
  virtual std::string side_token_to_string(int32_t token_id, TokenizerSide /*side*/) const {
    return token_to_string(token_id);
  }
  virtual std::optional<int32_t> string_to_token(std::string_view token) const = 0;

  // The token that stands for a language, by the code that the tokenizer's class takes ("fr_XX", "fra_Latn", "fr").
  // Errors, under `field`'s name: an unknown language (lists the known ones); a model without languages.
  virtual StatusOr<int32_t> language_token(std::string_view /*language*/, std::string_view field) const {
    return field_error(field, "this model has no languages to choose from");
  }

  // Left out of texts by skip_special_tokens.
  virtual bool is_special(int32_t token_id) const = 0;

  // One past the largest id (the model's vocab_size may be larger).
  virtual int32_t vocab_size() const = 0;

  // Whole text of ids. Invalid UTF-8 gives U+FFFD, as replaces_each_byte() says.
  std::string decode(std::span<const int32_t> token_ids, bool skip_special_tokens) const;
};

}  // namespace transept
