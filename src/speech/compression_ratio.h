// How much zlib makes of a text: what repeats itself over and over shows in it.
#pragma once

#include <string_view>

namespace transept {

// Bytes over bytes after zlib at level 6; 0 for the empty text. openai-whisper takes the stripped text of a window.
// Source: openai-whisper, utils.py, compression_ratio. Thread-safe.
double compression_ratio(std::string_view text);

}  // namespace transept
