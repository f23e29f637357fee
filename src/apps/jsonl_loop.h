// The loop of verbs that need no engine (tokenize, detokenize): JSON objects in, JSON lines out. Blocks its caller.
#pragma once

#include <string>

#include "apps/flags.h"
#include "base/function_ref.h"
#include "base/json.h"
#include "base/status.h"

namespace transept {

// Passes the JSON objects of `inline_bodies`, then those of --input, to `answer` one at a time. Writes {"id",
// ...answer} or {"id", "error"} to --output in input order. Returns an exit code.
int run_jsonl(std::string_view verb, const Flags& flags, const std::vector<Json>& inline_bodies,
              FunctionRef<StatusOr<Json>(const Json& body)> answer);

}  // namespace transept
