#include "startup/whisper_alias.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/strings.h"
#include "hub/repo_name.h"

namespace transept {

std::string_view whisper_alias(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"tiny", "openai/whisper-tiny"},
      {"tiny.en", "openai/whisper-tiny.en"},
      {"base", "openai/whisper-base"},
      {"base.en", "openai/whisper-base.en"},
      {"small", "openai/whisper-small"},
      {"small.en", "openai/whisper-small.en"},
      {"medium", "openai/whisper-medium"},
      {"medium.en", "openai/whisper-medium.en"},
      {"large-v1", "openai/whisper-large"},
      {"large-v2", "openai/whisper-large-v2"},
      {"large-v3", "openai/whisper-large-v3"},
      {"large", "openai/whisper-large-v3"},
      {"large-v3-turbo", "openai/whisper-large-v3-turbo"},
      {"turbo", "openai/whisper-large-v3-turbo"},
      {"distil-small.en", "distil-whisper/distil-small.en"},
      {"distil-medium.en", "distil-whisper/distil-medium.en"},
      {"distil-large-v2", "distil-whisper/distil-large-v2"},
      {"distil-large-v3", "distil-whisper/distil-large-v3"},
      {"distil-large-v3.5", "distil-whisper/distil-large-v3.5"},
  };
  for (const auto& [alias, full] : kNames) {
    if (alias == name) return full;
  }
  return "";
}

std::string full_name(std::string_view name) {
  const size_t at = std::min(name.find('@'), name.size());
  const std::string_view alias = whisper_alias(name.substr(0, at));
  return alias.empty() ? std::string(name) : str_cat(alias, name.substr(at));
}

std::string meant_name(std::string_view name) {
  // The address of a model's page, or of a file or revision of it: the first two parts of its path.
  for (const std::string_view site :
       {"https://huggingface.co/", "http://huggingface.co/", "huggingface.co/", "hf.co/"}) {
    if (!name.starts_with(site)) continue;
    name.remove_prefix(site.size());
    const size_t slash = name.find('/'), end = name.find_first_of("/?#", slash == name.npos ? slash : slash + 1);
    name = name.substr(0, end);
    break;
  }
  while (name.ends_with('/')) name.remove_suffix(1);
  if (has_repo_form(name) && !is_model_file_name(name)) return std::string(name);
  std::string word = ascii_lower(name.substr(name.rfind('/') + 1));
  // whisper.cpp's files: ggml-tiny.en-q5_1.bin
  if (word.starts_with("ggml-") && word.ends_with(".bin")) {
    word = word.substr(5, word.size() - 9);
    if (const size_t type = word.rfind("-q"); type != std::string::npos) word.resize(type);
  } else if (is_model_file_name(word)) {
    word.resize(word.rfind('.'));  // openai-whisper's: tiny.en.pt
  }
  std::string_view alias = whisper_alias(word);
  if (alias.empty() && word.starts_with("whisper-")) alias = whisper_alias(std::string_view(word).substr(8));
  if (!alias.empty()) return std::string(alias);
  static constexpr std::pair<std::string_view, std::string_view> kOwners[] = {
      {"opus-mt-", "Helsinki-NLP/"}, {"bart-large", "facebook/"}, {"bart-base", "facebook/"},
      {"nllb-200-", "facebook/"},    {"m2m100_", "facebook/"},    {"mbart-large", "facebook/"},
      {"t5-", "google-t5/"},         {"flan-t5-", "google/"},     {"trocr-", "microsoft/"},
      {"distil-", "distil-whisper/"}};
  const bool is_file = is_model_file_name(name);
  for (const auto& [begin, owner] : kOwners) {
    const bool is_whole = word.size() > begin.size() || !(begin.ends_with('-') || begin.ends_with('_'));
    if (!is_file && word.starts_with(begin) && is_whole) return str_cat(owner, word);
  }
  return "";
}

}  // namespace transept
