// What flags mean for the runner of a rank on this machine. Functions without state: thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "base/isa.h"
#include "base/status.h"
#include "engine/encode_pacer.h"
#include "rank/model_runner.h"
#include "startup/engine_config.h"
#include "startup/replica_cpus.h"
#include "startup/weight_storage.h"

namespace transept {

// Worked out once; the types need the weights' headers too (storage_types()).
struct RunnerChoices {
  Isa isa;
  StorageTypes types;
  ReplicaCpus cpus;     // of replicas, or of ranks
  bool may_pin = true;  // false: the system refuses what --cpu-affinity asks for, and cpus.cpus is empty
  EncodeSliceOptions encode_slice;
  std::shared_ptr<const DeviceKind> device;  // null: the processor. It outlives the runners
};

// All but the types. Errors: a flag, by name.
StatusOr<RunnerChoices> make_runner_choices(const EngineConfig& config);

// Without what the part of a model, shortlists and ranks add. `rank`: which of the choice's processors are its.
EncoderDecoderModelRunner::Options runner_options(const EngineConfig& config, const RunnerChoices& choices,
                                                  int32_t rank = 0);

}  // namespace transept
