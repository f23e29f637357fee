// Decides which of transformers' tokenizer classes a model folder means: the class that its files name, else the class
// of its model type. Functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/pipeline/tokenizer_config.h"
#include "text/tokenizer_hints.h"

namespace transept {

enum class TokenizerKind : uint8_t {
  kUnknown,  // no known class
  kBart,     // also Roberta, LED, ...: byte-level, <s> X </s>
  kBlenderbot,
  kBlenderbotSmall,
  kByT5,
  kGpt2,
  kLlama,
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

// Returns the class that the folder names, without "Fast" at its end: tokenizer_config.json's, else config.json's.
// Returns "" if neither says more than that the tokenizers library is used. Valid as long as the arguments.
std::string_view named_tokenizer_class(const TokenizerConfig& config, const TokenizerHints& hints);

// By the named class, else by the model's type.
TokenizerKind find_tokenizer_kind(const TokenizerConfig& config, const TokenizerHints& hints);

// transformers' name of the class, for error texts. If several classes are one kind, the first of them.
std::string_view tokenizer_class_name(TokenizerKind kind);

}  // namespace transept
