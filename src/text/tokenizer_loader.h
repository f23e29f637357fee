// Making a tokenizer of the texts of a model folder's files. Takes texts and not paths, so that fuzzers and tests need
// no folder.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_hints.h"

namespace transept {

// Files of the `tokenizers` library. Languages are those of the tokenizer's class. REQUIRES: tokenizer_json.
StatusOr<std::unique_ptr<Tokenizer>> make_json_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints);

// GPT-2's layout, byte-level, and BlenderbotSmall's. Which special tokens stand around a text follows from
// tokenizer_class, else from the model type. REQUIRES: vocab_json and merges_txt.
StatusOr<std::unique_ptr<Tokenizer>> make_vocab_merges_tokenizer(const TokenizerFiles& files,
                                                                 const TokenizerHints& hints);

// BlenderbotSmallTokenizer. REQUIRES: vocab_json and merges_txt.
StatusOr<std::unique_ptr<Tokenizer>> make_blenderbot_small_tokenizer(const TokenizerFiles& files,
                                                                     const TokenizerHints& hints);

inline constexpr std::string_view kSpieceFile = "spiece.model";
inline constexpr std::string_view kSentencePieceBpeFile = "sentencepiece.bpe.model";
inline constexpr std::string_view kTokenizerModelFile = "tokenizer.model";
bool has_sentencepiece_file(const TokenizerFiles& files);

// T5, Pegasus, mBART, mBART-50, NLLB, PLBart, XLM-R, M2M100 by tokenizer_class, else by the model type. REQUIRES:
// has_sentencepiece_file(files).
StatusOr<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(const TokenizerFiles& files,
                                                                  const TokenizerHints& hints);

// Pieces whose ids stand in a vocab.json: M2M100's languages follow it, Marian has a model each for source and target.
// `file` and `bytes` are the SentencePiece model. Errors: a file is missing, or the files do not belong together.
StatusOr<std::unique_ptr<Tokenizer>> make_m2m100_tokenizer(const TokenizerFiles& files, std::string_view file,
                                                           std::string_view bytes, const TokenizerHints& hints);
StatusOr<std::unique_ptr<Tokenizer>> make_marian_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints);

// ByT5: a token a byte. Needs no file; the configuration may name special tokens.
StatusOr<std::unique_ptr<Tokenizer>> make_byte_tokenizer(const TokenizerFiles& files, const TokenizerHints& hints);

// bart-g2p's: one id a character. REQUIRES: both tables in `hints`. Errors name the table.
StatusOr<std::unique_ptr<Tokenizer>> make_character_tokenizer(const TokenizerHints& hints);

}  // namespace transept
