// From the spelling of tokens back to text. Immutable, so thread-safe.
// Source: decoders/ of Hugging Face's tokenizers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace transept {

// The tokens that stand before one. Borrows all of it.
struct EarlierTokens {
  std::span<const int32_t> ids;
  FunctionRef<std::string_view(int32_t)> spelling;  // "" : no token, which counts for nothing

  bool none() const;
  // The spelling of the last of them, "" if there is none.
  std::string_view last() const;
};

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;

  // Appends the bytes that a token adds to a text, which may be half a character.
  virtual void append_bytes(const EarlierTokens& earlier, std::string_view token, std::string& out) const = 0;

  // What a text ends with whose last token is `last`: Tokenizer::append_end.
  virtual void append_end(std::string_view /*last*/, std::string& /*out*/) const {}

  // Tokenizer::replaces_each_byte.
  virtual bool replaces_each_byte() const { return false; }
};

}  // namespace transept
