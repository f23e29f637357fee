// Decodes the spellings of tokens into text. Immutable, so thread-safe. Source: decoders/ of Hugging Face's tokenizers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace transept {

// The tokens before the one that is decoded. Borrows everything.
struct EarlierTokens {
  std::span<const int32_t> ids;
  FunctionRef<std::string_view(int32_t)> spelling;  // "": no token, ignored

  bool none() const;
  // The spelling of the last one, "" if there is none.
  std::string_view last() const;
};

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;

  // Appends the bytes that `token` adds to a text. They may end inside a character.
  virtual void append_bytes(const EarlierTokens& earlier, std::string_view token, std::string& out) const = 0;

  // Appends the end of a text whose last token is `last`: Tokenizer::append_end.
  virtual void append_end(std::string_view /*last*/, std::string& /*out*/) const {}

  // Tokenizer::replaces_each_byte.
  virtual bool replaces_each_byte() const { return false; }
};

}  // namespace transept
