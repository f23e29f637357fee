// What a rank of a model does that is not the engine's own: loads its part from the same folder and flags as the first
// rank does (load_engine()), and executes its plans. Functions: one thread of each rank calls them.
#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/communicator.h"
#include "base/isa.h"
#include "base/status.h"
#include "core/model_config.h"
#include "rank/runner_options.h"
#include "startup/engine_config.h"
#include "weights/weight_map.h"

namespace transept {

// How long ranks wait for each other: while they load, and in a step.
inline constexpr Duration kRankLoadTimeout = std::chrono::minutes(30);
Duration rank_timeout(const EngineConfig& config);

// Errors, of --tensor-parallel-size and --pipeline-parallel-size by name: numbers of ranks that sums have no tree for,
// or too many; flags that ranks do not have (yet), with what would do; of --pipeline-layers, what no model's layers can
// be; a device that does not go with them. Asked before any rank's process is started.
Status check_rank_flags(const EngineConfig& config);

// Returns when the first rank has ended the group. Errors, which end the group, too: those of check_rank_flags(), of
// loading, of run_rank(). REQUIRES: config.num_ranks() is ranks.size(); the rank is not the first.
Status work_as_rank(const EngineConfig& config, Communicator& ranks);

// What this rank reads of a folder that was packed for ranks. `ranks` may be null: one rank.
ReadingRank reading_rank(const EngineConfig& config, const Communicator* ranks);

// All ranks call these two while they load, before their weights are packed. Errors, on all ranks: config.json or the
// tensors are not the same (kInvalidArgument, names what differs); the communicator's. Of a folder that was packed for
// ranks, which have parts of their own, what the parts are called and packed as.
Status agree_on_model(Communicator& ranks, const ModelConfig& config, const WeightMap& weights);
// What a rank's runner is told of the others. Borrows `ranks`, which may be null: one rank.
void set_ranks(const EngineConfig& config, Communicator* ranks, ModelRunnerOptions& options);
// The lowest level of all ranks, at which all compute.
StatusOr<Isa> least_isa(Communicator& ranks, Isa isa);

}  // namespace transept
