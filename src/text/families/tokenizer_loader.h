// Makes a tokenizer from the texts of a model folder's files. It takes texts, not paths, so that fuzzers and tests need
// no folder. Functions, thread-safe. Errors name file, field and reason; classes that a layout does not support are
// kUnimplemented, by name.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "text/pipeline/tokenizer_config.h"
#include "text/tokenizer.h"
#include "text/tokenizer_hints.h"

namespace transept {

// The one file of the `tokenizers` library. The tokenizer's class decides the languages. REQUIRES: tokenizer_json.
StatusOr<std::unique_ptr<Tokenizer>> make_json_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints);

// GPT-2's byte-level layout, and BlenderbotSmall's. The tokenizer_class, else the model type, decides the special
// tokens around a text. REQUIRES: vocab_json and merges_txt.
StatusOr<std::unique_ptr<Tokenizer>> make_vocab_merges_tokenizer(const TokenizerFiles& files,
                                                                 const TokenizerHints& hints);

// BlenderbotSmallTokenizer. REQUIRES: vocab_json and merges_txt.
StatusOr<std::unique_ptr<Tokenizer>> make_blenderbot_small_tokenizer(const TokenizerFiles& files,
                                                                     const TokenizerHints& hints);

inline constexpr std::string_view kSpieceFile = "spiece.model";
inline constexpr std::string_view kSentencePieceBpeFile = "sentencepiece.bpe.model";
inline constexpr std::string_view kTokenizerModelFile = "tokenizer.model";
// Whether one of these three is present.
bool has_sentencepiece_file(const TokenizerFiles& files);

// By the tokenizer_class, else the model type: T5, Llama, Pegasus, mBART, mBART-50, NLLB, PLBart, XLM-R, M2M100.
// REQUIRES: has_sentencepiece_file(files).
StatusOr<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(const TokenizerFiles& files,
                                                                  const TokenizerHints& hints);

// A vocab.json gives pieces their ids. M2M100's languages follow it; `file` and `bytes` are its SentencePiece model.
// Marian has a model each for source and target. Errors: a file is missing, or the files do not belong together.
StatusOr<std::unique_ptr<Tokenizer>> make_m2m100_tokenizer(const TokenizerFiles& files, std::string_view file,
                                                           std::string_view bytes, const TokenizerHints& hints);
StatusOr<std::unique_ptr<Tokenizer>> make_marian_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints);

// ByT5: one token per byte. Needs no file; the configuration may name special tokens.
StatusOr<std::unique_ptr<Tokenizer>> make_byte_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints);

// bart-g2p: one id per character. Errors: as CharacterTokenizer::create.
StatusOr<std::unique_ptr<Tokenizer>> make_character_tokenizer(const TokenizerHints& hints);

}  // namespace transept
