// Converts the forms of a prompt (docs/api.md, Prompt forms) to an EncoderDecoderPrompt. A pure function: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "core/prompt.h"

namespace transept {

// Reads the members `prompt` and `decoder_prompt` of a request. Appends a warning for each unknown member of a prompt
// object, until `warnings` has 20. Errors (kInvalidArgument): a prompt that is missing or malformed; they name prompt,
// prompt_token_ids (or prompt_tokens, as written), encoder_prompt, decoder_prompt or multi_modal_data.
StatusOr<EncoderDecoderPrompt> read_prompt(const Json& request, std::vector<std::string>& warnings);

}  // namespace transept
