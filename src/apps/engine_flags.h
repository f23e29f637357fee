// Flags that configure the engine, and the configuration that they give. Named as vLLM's where it has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/flags.h"
#include "startup/load_engine.h"

namespace transept {

std::vector<FlagSpec> engine_flags();
FlagSpec quiet_flag(std::string group);

// Whether the environment of mpirun and its like says which of several nodes this process is. kNo: of a verb that
// starts no rank, whose --tensor-parallel-size is only a number.
enum class AskLauncher : uint8_t { kYes, kNo };

// REQUIRES: the first positional argument is the model. Errors: a flag out of range, by name; those of
// resolve_model, which fetches a model that is not here.
StatusOr<EngineConfig> engine_config(const Flags& flags, AskLauncher launcher = AskLauncher::kYes);

// Which of --nnodes this process is, by its flags or a launcher's environment. Errors: those of these.
StatusOr<int32_t> node_rank(const Flags& flags);

}  // namespace transept
