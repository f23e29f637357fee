// The short names of openai-whisper's models. Pure: thread-safe.
#pragma once

#include <string_view>

namespace transept {

// Returns the name on the Hugging Face hub that a name of openai-whisper or faster-whisper stands for: "tiny.en" ->
// "openai/whisper-tiny.en", "large" and "large-v3" -> "openai/whisper-large-v3", "turbo" ->
// "openai/whisper-large-v3-turbo", "distil-large-v3" -> "distil-whisper/distil-large-v3". "": it is none of them.
std::string_view whisper_alias(std::string_view name);

}  // namespace transept
