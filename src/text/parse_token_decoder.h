// Which decoder (token_decoder.h) a tokenizer has.
#pragma once

#include <memory>

#include "base/status.h"
#include "text/json_field.h"
#include "text/token_decoder.h"

namespace transept {

// The member "decoder" of a tokenizer.json: ByteLevel; Sequence, Replace, Strip, Metaspace, WordPiece, ByteFallback,
// Fuse, as far as a text can be made of them token by token; BPEDecoder; null (tokens with spaces between them).
// Errors name the field; another type is refused by name.
StatusOr<std::unique_ptr<TokenDecoder>> parse_token_decoder(const JsonField& field);

// A byte-level vocabulary's.
std::unique_ptr<TokenDecoder> make_byte_level_decoder();

}  // namespace transept
