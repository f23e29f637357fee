#pragma once

#include <string>

#include "apps/flags.h"
#include "base/function_ref.h"
#include "base/json.h"
#include "base/status.h"

namespace transept {

// Feeds JSON objects, one at a time, from --input (or, without it, those in `inline_bodies`) to `answer`, and writes
// {"id", ...answer} or {"id", "error"} to --output in input order. Gives an exit code. For verbs that need no engine.
int run_jsonl(std::string_view verb, const Flags& flags, const std::vector<Json>& inline_bodies,
              FunctionRef<StatusOr<Json>(const Json& body)> answer);

}  // namespace transept
