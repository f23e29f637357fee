// The languages of multilingual families, in the order of their tokens' ids: no file of a checkpoint has this order.
// Constants, thread-safe. Source: FAIRSEQ_LANGUAGE_CODES of transformers' tokenization files.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace transept {

std::span<const std::string_view> mbart_languages();             // "en_XX": 25
std::span<const std::string_view> mbart50_languages();           // the same and 27 more
std::span<const std::string_view> nllb_languages();              // "eng_Latn": 202
std::span<const std::string_view> m2m100_languages();            // "en", written __en__: 100
std::span<const std::string_view> wmt21_languages();             // the same way: 8
std::span<const std::string_view> plbart_languages(bool multi);  // "java", written __java__: 3 or 7

// Where the token of a language ends that a text of Marian begins with, such as ">>fra<< The text"; 0: with none.
// Source: language_code_re of transformers' tokenization_marian.py, up to the first "<<".
size_t language_code_end(std::string_view text);

}  // namespace transept
