// What an instance of a fleet loads, where it differs from a whole model's: its flags, and the engine of an encode
// instance. Thread-safe functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "encoder_cache/connector.h"
#include "engine/encoder_engine.h"
#include "rank/model_fingerprint.h"
#include "rank/runner_options.h"
#include "startup/engine_config.h"
#include "startup/loaded_model.h"
#include "tensor/dtype.h"
#include "weights/weight_map.h"

namespace transept {

// Requests that an encode instance has in flight at most: of POST /v1/encode, and of tickets.
inline constexpr int32_t kMaxEncodeRequests = 1024;

// The type that rows travel as. Errors: kInvalidArgument, --ec-transfer-dtype is unknown.
StatusOr<DType> transfer_dtype(const EngineConfig& config);
DType other_transfer_dtype(DType dtype);  // of the two

// Instances of one checkpoint, by what their fingerprints have beside it; the first is of these weights, and `what`
// says how another differs, as LoadedModel::other_fingerprints has it.
struct KindOfInstance {
  FingerprintOptions options;
  std::string what;
};
std::vector<KindOfInstance> kinds_of_instances(const std::optional<WeightFormat>& weights);

// Says why an instance of another fingerprint is none of this model's fleet: what differs, if LoadedModel knows that
// fingerprint; or what may. `other` is "the decode instance p0", for instance.
std::string explain_other_model(const LoadedModel& loaded, const ModelFingerprint& fingerprint, std::string_view other);

// Whether a decode instance encodes what encode instances do not. Errors: kInvalidArgument, --ec-fallback is unknown.
StatusOr<bool> falls_back(const EngineConfig& config);

// Times of transfers. Errors: kInvalidArgument, --ec-lease is out of its range.
StatusOr<EcTimes> transfer_times(const EngineConfig& config);

// Errors: flags that an instance does not have, by name: several replicas; those of the functions above.
Status check_instance_config(const EngineConfig& config);

// The engine of an encode instance, with the encoder's part of `weights`. Reads loaded.model_config, config and
// fingerprint. Errors: those of EncoderModelRunner::create(); --ec-buffer-memory is less than one longest input.
StatusOr<std::unique_ptr<EncoderEngine>> make_encoder_engine(const LoadedModel& loaded,
                                                             const std::shared_ptr<WeightMap>& weights,
                                                             const ModelRunnerOptions& options,
                                                             EncoderCacheConnector& connector, const Clock& clock);

}  // namespace transept
