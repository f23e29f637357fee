// The languages of speech models: codes as Whisper's tokens spell them, and English names. Constant data: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace transept {

// Returns the code of a code or name, in any case: "es", "Spanish", "Castilian" and "<|es|>" -> "es" (openai-whisper,
// tokenizer.py, LANGUAGES and TO_LANGUAGE_CODE). An unknown one is returned in lower case, without "<|" and "|>": a
// model may know more codes than this table.
std::string speech_language_code(std::string_view code_or_name);

// "en" -> "english". An unknown code is returned as it is.
std::string_view speech_language_name(std::string_view code);

std::vector<std::string_view> speech_language_codes();

}  // namespace transept
