// Loads a tokenizer from a model's folder, or from the texts of its files. Functions, thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/model_folder.h"
#include "base/status.h"
#include "text/pipeline/tokenizer_config.h"
#include "text/tokenizer.h"
#include "text/tokenizer_hints.h"

namespace transept {

// Reads the tokenizer files of a model and makes the tokenizer. Errors: those of make_tokenizer; a file that cannot be
// read; kUnimplemented for a folder with nothing but vocab.txt or tekken.json.
StatusOr<std::unique_ptr<Tokenizer>> load_tokenizer(const ModelFolder& folder, const TokenizerHints& hints);

// Makes the tokenizer of the first of these that is present: tokenizer.json; vocab.json and merges.txt; Marian's files;
// a SentencePiece model (with vocab.json for M2M100); the character tables of `hints`; nothing at all, if the class is
// ByT5's. added_tokens.json, special_tokens_map.json and tokenizer_config.json add to all but the character tables.
// Errors name file, field and reason: kUnimplemented for an unsupported kind of tokenizer, by name; kNotFound if no
// file is present.
StatusOr<std::unique_ptr<Tokenizer>> make_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints);

}  // namespace transept
