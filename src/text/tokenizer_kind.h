// Which of transformers' tokenizer classes a model folder means: its files name the class, else the model's type tells.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer_config.h"
#include "text/tokenizer_hints.h"

namespace transept {

enum class TokenizerKind : uint8_t {
  kUnknown,  // no class is named, or none that is known
  kBart,     // also Roberta, LED, ...: byte-level, <s> X </s>
  kBlenderbot,
  kBlenderbotSmall,
  kByT5,
  kGpt2,
  kM2M100,
  kMarian,
  kMBart,
  kMBart50,
  kNllb,
  kPegasus,
  kPLBart,
  kT5,
  kWhisper,
  kXlmRoberta,
};

// The class that the folder names: tokenizer_config.json's, else config.json's; "" if neither says more than that the
// tokenizers library made it.
std::string_view named_tokenizer_class(const TokenizerConfig& config, const TokenizerHints& hints);

// By the named class, else by the model's type.
TokenizerKind find_tokenizer_kind(const TokenizerConfig& config, const TokenizerHints& hints);

// transformers' name of the class, for error texts.
std::string_view tokenizer_class_name(TokenizerKind kind);

}  // namespace transept
