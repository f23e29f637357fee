#include "core/speech_languages.h"

#include <utility>

#include "base/ascii.h"

namespace transept {
namespace {

using Entry = std::pair<std::string_view, std::string_view>;  // code, name

// clang-format off
constexpr Entry kNames[] = {
    {"en", "english"}, {"zh", "chinese"}, {"de", "german"}, {"es", "spanish"}, {"ru", "russian"}, {"ko", "korean"},
    {"fr", "french"}, {"ja", "japanese"}, {"pt", "portuguese"}, {"tr", "turkish"}, {"pl", "polish"},
    {"ca", "catalan"}, {"nl", "dutch"}, {"ar", "arabic"}, {"sv", "swedish"}, {"it", "italian"}, {"id", "indonesian"},
    {"hi", "hindi"}, {"fi", "finnish"}, {"vi", "vietnamese"}, {"he", "hebrew"}, {"uk", "ukrainian"}, {"el", "greek"},
    {"ms", "malay"}, {"cs", "czech"}, {"ro", "romanian"}, {"da", "danish"}, {"hu", "hungarian"}, {"ta", "tamil"},
    {"no", "norwegian"}, {"th", "thai"}, {"ur", "urdu"}, {"hr", "croatian"}, {"bg", "bulgarian"},
    {"lt", "lithuanian"}, {"la", "latin"}, {"mi", "maori"}, {"ml", "malayalam"}, {"cy", "welsh"}, {"sk", "slovak"},
    {"te", "telugu"}, {"fa", "persian"}, {"lv", "latvian"}, {"bn", "bengali"}, {"sr", "serbian"},
    {"az", "azerbaijani"}, {"sl", "slovenian"}, {"kn", "kannada"}, {"et", "estonian"}, {"mk", "macedonian"},
    {"br", "breton"}, {"eu", "basque"}, {"is", "icelandic"}, {"hy", "armenian"}, {"ne", "nepali"},
    {"mn", "mongolian"}, {"bs", "bosnian"}, {"kk", "kazakh"}, {"sq", "albanian"}, {"sw", "swahili"},
    {"gl", "galician"}, {"mr", "marathi"}, {"pa", "punjabi"}, {"si", "sinhala"}, {"km", "khmer"}, {"sn", "shona"},
    {"yo", "yoruba"}, {"so", "somali"}, {"af", "afrikaans"}, {"oc", "occitan"}, {"ka", "georgian"},
    {"be", "belarusian"}, {"tg", "tajik"}, {"sd", "sindhi"}, {"gu", "gujarati"}, {"am", "amharic"},
    {"yi", "yiddish"}, {"lo", "lao"}, {"uz", "uzbek"}, {"fo", "faroese"}, {"ht", "haitian creole"}, {"ps", "pashto"},
    {"tk", "turkmen"}, {"nn", "nynorsk"}, {"mt", "maltese"}, {"sa", "sanskrit"}, {"lb", "luxembourgish"},
    {"my", "myanmar"}, {"bo", "tibetan"}, {"tl", "tagalog"}, {"mg", "malagasy"}, {"as", "assamese"}, {"tt", "tatar"},
    {"haw", "hawaiian"}, {"ln", "lingala"}, {"ha", "hausa"}, {"ba", "bashkir"}, {"jw", "javanese"},
    {"su", "sundanese"}, {"yue", "cantonese"},
};
// Other names of the same.
constexpr Entry kAliases[] = {
    {"my", "burmese"}, {"ca", "valencian"}, {"nl", "flemish"}, {"ht", "haitian"}, {"lb", "letzeburgesch"},
    {"ps", "pushto"}, {"pa", "panjabi"}, {"ro", "moldavian"}, {"ro", "moldovan"}, {"si", "sinhalese"},
    {"es", "castilian"}, {"zh", "mandarin"},
};
// clang-format on

}  // namespace

std::string speech_language_code(std::string_view code_or_name) {
  std::string wanted = ascii_lower(code_or_name);
  if (wanted.size() > 4 && wanted.starts_with("<|") && wanted.ends_with("|>")) {
    wanted = wanted.substr(2, wanted.size() - 4);
  }
  for (const auto& [code, name] : kNames) {
    if (name == wanted) return std::string(code);
  }
  for (const auto& [code, name] : kAliases) {
    if (name == wanted) return std::string(code);
  }
  return wanted;
}

std::string_view speech_language_name(std::string_view code) {
  for (const auto& [known, name] : kNames) {
    if (known == code) return name;
  }
  return code;
}

std::vector<std::string_view> speech_language_codes() {
  std::vector<std::string_view> codes;
  for (const auto& [code, name] : kNames) codes.push_back(code);
  return codes;
}

}  // namespace transept
