// Prompts of models that transcribe: the tokens before the text of a transcript, and Whisper's rules. Pure functions
// and immutable objects: thread-safe. Source: openai-whisper, tokenizer.py (sot_sequence); docs/api.md, Prompts.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "multimodal/input_rules.h"

namespace transept {

// Start, language and task where the model names them, and, unless the transcript has timestamps, the token that says
// so, if the model has one. tokens: null: the start token alone.
std::vector<int32_t> transcript_prompt(const SpeechTokens* tokens, int32_t start, std::optional<int32_t> language,
                                       std::optional<int32_t> task, bool timestamps);

std::unique_ptr<InputRules> make_transcript_rules(InputContext context);

}  // namespace transept
