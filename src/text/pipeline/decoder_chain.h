// The decoders of a tokenizer.json that process token by token, chained. A function, thread-safe.
#pragma once

#include <memory>

#include "base/status.h"
#include "text/json_field.h"
#include "text/subword/token_decoder.h"

namespace transept {

// Parses one of Replace, Strip, Metaspace, WordPiece, ByteFallback, Fuse, or a Sequence of them (64 steps at most).
// After Fuse the text is one piece, and only one strip of its front can be done token by token: all else after Fuse is
// kUnimplemented, by name, as is any other type. Errors name the field.
StatusOr<std::unique_ptr<TokenDecoder>> parse_decoder_chain(const JsonField& field);

}  // namespace transept
