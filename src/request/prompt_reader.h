// The forms of a prompt (API.md, A request) -> EncoderDecoderPrompt.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "core/prompt.h"

namespace transept {

// Reads the members `prompt` and `decoder_prompt` of a request. Unknown members of a prompt object are appended to
// `warnings`. Errors (kInvalidArgument) name prompt, prompt_token_ids (or the alias that was written), encoder_prompt,
// decoder_prompt or multi_modal_data.
StatusOr<EncoderDecoderPrompt> read_prompt(const Json& request, std::vector<std::string>& warnings);

}  // namespace transept
