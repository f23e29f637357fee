// The decoders of a tokenizer.json that work on one token after the other, in a row.
#pragma once

#include <memory>

#include "base/status.h"
#include "text/json_field.h"
#include "text/token_decoder.h"

namespace transept {

// One of Replace, Strip, Metaspace, WordPiece, ByteFallback, Fuse, or a Sequence of them. Behind Fuse, where the text
// is one, only the stripping of its front can be done token by token: the rest is refused by name, as is any other
// type.
StatusOr<std::unique_ptr<TokenDecoder>> parse_decoder_chain(const JsonField& field);

}  // namespace transept
