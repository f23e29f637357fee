// JSON schemas of what routes answer with, by their names in openapi.json. Pure functions: thread-safe.
#pragma once

#include "base/json.h"

namespace transept {

// Of every server: completions, scores, translations, tokens, models, state, errors.
Json reply_schemas();
// Of one that transcribes.
Json audio_reply_schemas();
// components/responses: one a status of errors, by "Error" and its number.
Json error_responses();

}  // namespace transept
