// What the classes of some families say of sizes and special ids that config.json leaves out, or has under names of its
// own. Functions of their arguments: thread-safe.
#pragma once

#include "base/status.h"
#include "core/model_config.h"

namespace transept {

// Errors: kInvalidArgument, naming file and field: a value of the wrong type or range, an id outside the vocabulary.
//
// BLIP: generate() starts with text_config's bos_token_id and ends at its sep_token_id, whatever other files say.
Status settle_blip_config(ModelConfig& config);

// Pix2Struct: start, padding and end of Pix2StructTextConfig where no file names them.
Status settle_pix2struct_config(ModelConfig& config);

}  // namespace transept
