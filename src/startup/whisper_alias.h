// Names of the hub's models that people know from other tools. Pure: thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace transept {

// Returns the name on the Hugging Face hub that a name of openai-whisper or faster-whisper stands for: "tiny.en" ->
// "openai/whisper-tiny.en", "large" and "large-v3" -> "openai/whisper-large-v3", "turbo" ->
// "openai/whisper-large-v3-turbo", "distil-large-v3" -> "distil-whisper/distil-large-v3". "": it is none of them.
std::string_view whisper_alias(std::string_view name);

// The same, with a revision ("tiny@v1"); other names as they are.
std::string full_name(std::string_view name);

// Returns the name on the hub that may be meant by one that is nowhere: "whisper-tiny", "Tiny",
// "whisper-tiny/", "ggml-tiny.bin", "models/ggml-tiny.en-q5_1.bin" -> "openai/whisper-tiny" (".en"), "bart-large-cnn"
// -> "facebook/bart-large-cnn", "openai/whisper-tiny/" -> "openai/whisper-tiny". "": no idea.
std::string meant_name(std::string_view name);

}  // namespace transept
