// Tokens into words: at spaces, or at every character in languages that write none.
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
  std::string word;  // valid UTF-8: a maximal piece that is none is U+FFFD
  std::vector<int32_t> tokens = {};
};

enum class WordSplit : uint8_t { kSpaces, kCharacters };

// By the language's code: kCharacters for zh, ja, th, lo, my, yue.
WordSplit word_split(std::string_view language);

// Appends the bytes that a token stands for (byte-level: they may be part of a character).
using AppendTokenBytes = FunctionRef<void(int32_t token, std::string& out)>;

// Every token is in exactly one word; the words' tokens, one after the other, are `tokens`. A word ends where the bytes
// so far end a character, or a maximal piece that is no UTF-8; with kSpaces words go on until a piece begins with a
// space, or is nothing but punctuation. Linear time. REQUIRES: `tokens` are text tokens (no timestamps, no specials).
//
// The reference does the same but for characters that are broken over several tokens and never completed: it counts
// characters there that its whole text does not have, and drops words. Here that piece is one word.
std::vector<TokenWord> split_words(std::span<const int32_t> tokens, AppendTokenBytes append_bytes, WordSplit split);

}  // namespace transept
