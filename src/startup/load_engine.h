// Builds a model that is ready to serve from a model folder and the configuration.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/communicator.h"
#include "base/status.h"
#include "startup/engine_config.h"
#include "startup/instance_links.h"
#include "startup/loaded_model.h"

namespace transept {

// Errors: whatever is wrong in the folder's files or the flags, by name; or what the folder is instead of a model
// (startup/recognise_model.h). Borrows the clock.
StatusOr<LoadedModel> load_engine(const EngineConfig& config, const Clock& clock);
// Of an instance: the part of the model that its role needs, and its engine. Borrows what `links` has. Errors: as
// above; flags that an instance does not have.
StatusOr<LoadedModel> load_engine(const EngineConfig& config, const Clock& clock, const InstanceLinks& links);
// Of the first of config.tensor_parallel_size ranks, whose others run work_as_rank() over the same folder and flags;
// null: one rank. The engine keeps `ranks`, and tells the others to end when it does. Errors: as above, which end the
// group; those of the group.
StatusOr<LoadedModel> load_engine(const EngineConfig& config, const Clock& clock, std::shared_ptr<Communicator> ranks);

}  // namespace transept
