// Builds the JSON schemas of the answers of routes, by their names in openapi.json. Pure functions: thread-safe.
#pragma once

#include "base/json.h"

namespace transept {

// Answers of every server: completions, scores, translations, tokens, models, state, errors.
Json reply_schemas();
// Answers of a server that transcribes.
Json audio_reply_schemas();
// components/responses: one for each HTTP status of errors, named "Error404".
Json error_responses();

}  // namespace transept
