// A tokenizer from a model's folder, or from the texts of its files.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_hints.h"

namespace transept {

// Reads a model folder: tokenizer.json, else vocab.json + merges.txt, else SentencePiece files (with a vocab.json
// beside them where the class has one), else the hints' character tables, else nothing but bytes where the class says
// so; added_tokens.json, special_tokens_map.json and tokenizer_config.json beside each. Errors name file, field and
// reason.
StatusOr<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& dir, const TokenizerHints& hints);

// Of the first of these that is there: tokenizer.json; vocab.json and merges.txt; Marian's files; a SentencePiece
// model; the character tables of `hints`; nothing at all, where the class is ByT5's. Errors name file, field and
// reason; kinds of tokenizers that are not supported are refused by name (kUnimplemented); kNotFound where nothing is
// there.
StatusOr<std::unique_ptr<Tokenizer>> make_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints);

}  // namespace transept
