// Groups tokens into words: at spaces, or at every character in languages that write no spaces.
// Source: openai-whisper, tokenizer.py, split_to_word_tokens. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace transept {

struct TokenWord {
  std::string word;  // valid UTF-8: a maximal invalid piece is U+FFFD
  std::vector<int32_t> tokens = {};
};

enum class WordSplit : uint8_t { kSpaces, kCharacters };

// Returns the split of a language code: kCharacters for zh, ja, th, lo, my, yue.
WordSplit word_split(std::string_view language);

// Appends the bytes of a token. Tokens are byte-level: they may hold a part of a character.
using AppendTokenBytes = FunctionRef<void(int32_t token, std::string& out)>;

// Returns the words; their tokens, concatenated, are `tokens`. With kCharacters a word ends with the first token that
// completes a character or a maximal invalid piece. With kSpaces such pieces are joined until one begins with a space
// or is only punctuation. Linear time. REQUIRES: text tokens only (no timestamps, no special tokens).
//
// Differs from the reference for a character that is split over several tokens and never completed: the reference
// counts characters there that its whole text does not have, and drops words. Here that piece is one word.
std::vector<TokenWord> split_words(std::span<const int32_t> tokens, AppendTokenBytes append_bytes, WordSplit split);

}  // namespace transept
