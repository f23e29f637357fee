// Florence-2's prompts (transformers' Florence2Processor). A text beside an image is the encoder's, behind the image:
// `<image>` for each row, `<s>`, the text, `</s>`. A task word ("<CAPTION>") stands for a sentence; some take a text
// behind it ("<CAPTION_TO_PHRASE_GROUNDING>a red car"), the others are the whole prompt. Ids are the encoder's as they
// are given. The decoder's prompt is its own: its start token, or what decoder_prompt says.
#pragma once

#include <memory>
#include <string>

#include "multimodal/input_rules.h"

namespace transept {

std::unique_ptr<InputRules> make_florence2_rules(InputContext context);

// The sentence that a text stands for; a text without a task word stands for itself. Errors (under `param`): something
// beside a task word that takes no text.
StatusOr<std::string> florence2_sentence(const std::string& text, const std::string& param);

}  // namespace transept
