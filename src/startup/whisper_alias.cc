#include "startup/whisper_alias.h"

#include <utility>

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

}  // namespace transept
