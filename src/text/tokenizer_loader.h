// Making a tokenizer of the texts of a model folder's files. Takes texts and not paths, so that fuzzers and tests need
// no folder.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"

namespace transept {

// Of the first of these that is there: tokenizer.json; vocab.json and merges.txt; the character tables of `hints`.
// Errors name file, field and reason; kinds of tokenizers that are not supported are refused by name (kUnimplemented);
// kNotFound where nothing is there.
StatusOr<std::unique_ptr<Tokenizer>> make_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints);

// Files of the `tokenizers` library. REQUIRES: tokenizer_json.
StatusOr<std::unique_ptr<Tokenizer>> make_json_tokenizer(const TokenizerFiles& files);

// GPT-2's layout, byte-level. Which special tokens stand around a text follows from tokenizer_class, else from the
// model type. REQUIRES: vocab_json and merges_txt.
StatusOr<std::unique_ptr<Tokenizer>> make_vocab_merges_tokenizer(const TokenizerFiles& files,
                                                                 const TokenizerHints& hints);

// bart-g2p's: one id a character. REQUIRES: both tables in `hints`. Errors name the table.
StatusOr<std::unique_ptr<Tokenizer>> make_character_tokenizer(const TokenizerHints& hints);

}  // namespace transept
