// The ratio by which zlib compresses a text: high for text that repeats itself.
#pragma once

#include <string_view>

namespace transept {

// Returns bytes / compressed bytes (zlib, level 6); 0 for "". openai-whisper passes the stripped text of a window.
// Source: openai-whisper, utils.py, compression_ratio. A pure function: thread-safe.
double compression_ratio(std::string_view text);

}  // namespace transept
