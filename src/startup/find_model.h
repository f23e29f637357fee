// From a MODEL to the folder that has it: a folder, a bundled model, or a model of the hub, from its cache or fetched
// (docs/hub.md). The binary's verbs, the library and Python find models here. A function: thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "hub/hub_settings.h"
#include "hub/select_files.h"

namespace transept {

struct FindModelOptions {
  std::string revision;  // "": as the name says, else main
  ModelParts parts = ModelParts::kAll;
  // Asked when the name is one of the hub.
  std::function<StatusOr<HubSettings>()> hub_settings = HubSettings::from_environment;
  // Of a fetch: bytes; one call at a time, from any thread. `on_fetched` follows, before anything is logged.
  std::function<void(const std::string& name, int64_t done, int64_t total)> on_progress;
  std::function<void()> on_fetched;
};

// Takes the first of these that `name` is: a folder; a bundled model (in $TRANSEPT_MODELS, in ../share/transept/models
// beside the binary or the library, or in the source tree that it was built in); ORG/NAME[@REV] in the cache, without
// the network if it is complete there; that name on the hub, which is fetched. A short name of openai-whisper's
// ("tiny") stands for that on the hub (whisper_alias.h). A name that ends as a file of a model is a path. Errors: a
// name that is nowhere (says what was tried, and what may be meant); those of hub_settings and fetch_model; a model
// that would not run, by check_model_config, before its weights are fetched.
StatusOr<std::string> find_model(const std::string& name, const FindModelOptions& options);

}  // namespace transept
