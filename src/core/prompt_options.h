// Fields of a request that direct what its prompts become: tokenising, languages and the task of a transcript. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace transept {

struct PromptOptions {
  // Unset: yes for the encoder; a trailing end token of decoder text is dropped.
  std::optional<bool> add_special_tokens = {};
  std::optional<int32_t> truncate_prompt_tokens = {};  // keep the last k encoder ids; k > 0
  // "" is the same as unset.
  std::optional<std::string> source_lang = {}, target_lang = {};
  std::optional<std::string> language = {}, task = {};  // of a transcript; unset: detect it, and transcribe
  std::optional<bool> timestamps = {};
  // Words that must not be generated; no string is empty. The prompt processor tokenises them, and prepare_request
  // appends the ids to SamplingParams::bad_words_ids.
  std::optional<std::vector<std::string>> bad_words = {};
  // The text that the answer is expected to be. Tokenised by the prompt processor to SamplingParams::draft_token_ids.
  std::optional<std::string> prediction = {};
};

}  // namespace transept
