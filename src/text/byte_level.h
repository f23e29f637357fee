// GPT-2's way of writing bytes as characters, so that every text is a row of printable ones, and its way of splitting a
// text into words. Source: "Language Models are Unsupervised Multitask Learners", encoder.py of its release.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_range.h"

namespace transept {

// The pattern that split_gpt2 matches, as tokenizer files write it.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Appends the matches of kGpt2Pattern in text[range]; they cover all of it. REQUIRES: valid UTF-8.
void split_gpt2(std::string_view text, TextRange range, std::vector<TextRange>& words);

// Appends each byte as its character.
void append_byte_characters(std::string_view bytes, std::string& out);

// Appends the bytes that a token's characters stand for. A token with a character that stands for no byte is appended
// as it is (as the tokenizers library does: added tokens).
void append_token_bytes(std::string_view token, std::string& out);

}  // namespace transept
