// From the spelling of tokens back to text. Immutable, so thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/json_field.h"

namespace transept {

class TokenDecoder {
 public:
  // The member "decoder" of a tokenizer.json: ByteLevel. Errors name the field; another type is refused by name.
  static StatusOr<std::unique_ptr<TokenDecoder>> parse(const JsonField& field);
  static std::unique_ptr<TokenDecoder> byte_level();
  virtual ~TokenDecoder() = default;

  // Appends the bytes that a token adds to a text, which may be half a character. `is_first`: no token stands before
  // it.
  virtual void append_bytes(std::string_view token, bool is_first, std::string& out) const = 0;

  // The same where the token before it, `previous`, matters.
  virtual void append_next_bytes(std::string_view /*previous*/, std::string_view token, std::string& out) const {
    append_bytes(token, /*is_first=*/false, out);
  }
  // What a text ends with whose last token is `last`: Tokenizer::append_end.
  virtual void append_end(std::string_view /*last*/, std::string& /*out*/) const {}
};

}  // namespace transept
