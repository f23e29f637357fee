// GPT-2's byte-level text: writes every byte as a printable character, and splits a text into words. Functions,
// thread-safe. Source: "Language Models are Unsupervised Multitask Learners", encoder.py of its release.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode/text_range.h"

namespace transept {

// The pattern that split_gpt2 matches, as tokenizer files write it.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Appends the matches of kGpt2Pattern in `range` of `text`; they cover the range. REQUIRES: valid UTF-8.
void split_gpt2(std::string_view text, TextRange range, std::vector<TextRange>& words);

// Appends the character of each byte.
void append_byte_characters(std::string_view bytes, std::string& out);

// Appends the bytes of a token's characters. Appends a token unchanged if one of its characters stands for no byte
// (added tokens), as the tokenizers library does. REQUIRES: valid UTF-8.
void append_token_bytes(std::string_view token, std::string& out);

}  // namespace transept
