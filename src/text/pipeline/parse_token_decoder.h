// Makes the decoder (token_decoder.h) of a tokenizer. Functions, thread-safe.
#pragma once

#include <memory>

#include "base/status.h"
#include "text/json_field.h"
#include "text/subword/token_decoder.h"

namespace transept {

// Parses the member "decoder" of a tokenizer.json: ByteLevel; BPEDecoder; the types of decoder_chain.h; null (puts
// spaces between tokens). Errors name the field; another type is kUnimplemented, by name.
StatusOr<std::unique_ptr<TokenDecoder>> parse_token_decoder(const JsonField& field);

// The decoder of byte-level vocabularies.
std::unique_ptr<TokenDecoder> make_byte_level_decoder();

}  // namespace transept
