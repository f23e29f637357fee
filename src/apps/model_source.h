// From the MODEL of a command to the folder that has it: a folder, a bundled model, or a model of the hub, from its
// cache or fetched (docs/hub.md).
#pragma once

#include <string>

#include "apps/flags.h"
#include "hub/select_files.h"

namespace transept {

// Finds the first positional argument, in this order: a folder of that name; a bundled model (in $TRANSEPT_MODELS,
// beside the binary in ../share/transept/models, or in the source tree that the binary was built in); ORG/NAME[@REV] in
// the cache, without the network if it is complete there; that name on the hub, which is fetched. A short name of
// openai-whisper's ("tiny") stands for that on the hub (apps/whisper_alias.h). REQUIRES: there is an
// argument. Errors: a name that is nowhere (says what was tried); those of fetch_model; a model that would not run, by
// check_model_config, before its weights are fetched.
StatusOr<std::string> resolve_model(const Flags& flags, ModelParts parts);

}  // namespace transept
