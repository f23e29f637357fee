// The languages of speech models: codes as Whisper's tokens spell them, and names in English. Constant data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace transept {

// "en", "English", "Castilian", "<|en|>", in any case -> "en" (openai-whisper, tokenizer.py, LANGUAGES and
// TO_LANGUAGE_CODE). What is not known comes back in lower case: a model may know more codes than this table.
std::string speech_language_code(std::string_view code_or_name);

// "en" -> "english"; a code that is not known is its own name.
std::string_view speech_language_name(std::string_view code);

// Every code of the table.
std::vector<std::string_view> speech_language_codes();

}  // namespace transept
