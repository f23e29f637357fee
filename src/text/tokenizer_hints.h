// What loading a tokenizer needs to know of the model, besides the tokenizer's own files. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"

namespace transept {

struct TokenizerHints {
  // config.json's; "": it has none.
  std::string model_type = {}, tokenizer_class = {};
  int64_t vocab_size = 0;          // 0: unknown
  int64_t decoder_vocab_size = 0;  // if the two sides differ (Marian); 0: as vocab_size
  // Character vocabularies (bart-g2p): the values of config.json, unchecked; null: missing.
  Json grapheme_chars = {}, phoneme_chars = {};
  std::optional<int32_t> bos_token_id = {}, eos_token_id = {}, pad_token_id = {};
};

}  // namespace transept
