#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"

namespace transept {

// What loading must know of the model besides the tokenizer's own files.
struct TokenizerHints {
  // Of config.json.
  std::string model_type = {}, tokenizer_class = {};
  int64_t vocab_size = 0;          // 0: it does not say
  int64_t decoder_vocab_size = 0;  // where the two sides differ (Marian); 0: it does not say
  // Character vocabularies (bart-g2p): config.json's tables as they stand there; null: absent.
  Json grapheme_chars = {}, phoneme_chars = {};
  std::optional<int32_t> bos_token_id = {}, eos_token_id = {}, pad_token_id = {};
};

}  // namespace transept
