#include "startup/encoder_part.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "base/system_memory.h"
#include "encoder_cache/ec_frame.h"
#include "rank/encoder_model_runner.h"
#include "rank/largest_step.h"
#include "rank/lengths.h"
#include "startup/engine_ranges.h"

namespace transept {
namespace {

// --ec-buffer-memory of an encode instance: rows that were not sent yet, and those that are kept to be sent again.
StatusOr<uint64_t> output_bytes(const EngineConfig& config, const ExecutorInfo& info) {
  ASSIGN_OR_RETURN(const DType dtype, transfer_dtype(config));
  uint64_t longest = 0, positions = 0;  // of the item of most bytes
  for (const Consumers kind : kinds_of_items(info.spec)) {
    const auto of_kind =
        static_cast<uint64_t>(longest_item(info.spec, kind, {info.max_encoder_len, info.max_decoder_len}));
    const uint64_t bytes = of_kind * static_cast<uint64_t>(info.spec.width_of(kind)) * dtype_bytes(dtype);
    if (bytes > longest) longest = bytes, positions = of_kind;
  }
  if (!config.ec_buffer_memory.has_value()) {
    constexpr uint64_t kShareOfMachine = 10;
    const uint64_t wanted = longest * static_cast<uint64_t>(info.max_num_seqs);
    return std::max(longest, std::min(wanted, total_memory_bytes() / kShareOfMachine));
  }
  if (*config.ec_buffer_memory >= longest) return *config.ec_buffer_memory;
  return invalid_argument("--ec-buffer-memory: ", format_bytes(*config.ec_buffer_memory),
                          " is less than one longest input of ", positions, " positions: give at least ",
                          format_bytes(longest));
}

}  // namespace

StatusOr<DType> transfer_dtype(const EngineConfig& config) {
  const std::string& name = config.ec_transfer_dtype;
  if (name == "float32") return DType::kFloat32;
  if (name == "bfloat16") return DType::kBFloat16;
  return invalid_argument("--ec-transfer-dtype ", name, ": unknown; one of float32, bfloat16");
}

DType other_transfer_dtype(DType dtype) { return dtype == DType::kFloat32 ? DType::kBFloat16 : DType::kFloat32; }

std::vector<KindOfInstance> kinds_of_instances(const std::optional<WeightFormat>& weights) {
  const auto name = [](const std::optional<WeightFormat>& format) {
    return format.has_value() ? weight_format_name(*format) : "the checkpoint's types";
  };
  std::vector<KindOfInstance> kinds = {{{kEcWireVersion, weights}, ""}};
  const std::optional<WeightFormat> formats[] = {std::nullopt,    kFloat32Format, kFloat16Format,
                                                 kBFloat16Format, kInt8Format,    kInt4Format};
  for (const std::optional<WeightFormat>& format : formats) {
    if (format == weights) continue;
    kinds.push_back(
        {{kEcWireVersion, format},
         str_cat("has weights in ", name(format), ", and this one in ", name(weights), " (--dtype, --quantization)")});
  }
  for (const int32_t version : {kEcWireVersion - 1, kEcWireVersion + 1}) {
    kinds.push_back({{version, weights},
                     str_cat("is of a version of transept that speaks version ", version,
                             " of the wire between instances, and this one ", kEcWireVersion)});
  }
  return kinds;
}

std::string explain_other_model(const LoadedModel& loaded, const ModelFingerprint& fingerprint,
                                std::string_view other) {
  const auto known =
      std::ranges::find(loaded.other_fingerprints, fingerprint, [](const auto& each) { return each.first; });
  if (known != loaded.other_fingerprints.end()) return str_cat(other, " ", known->second);
  return str_cat(other, " has another checkpoint, --dtype, --quantization or version");
}

StatusOr<bool> falls_back(const EngineConfig& config) {
  if (config.ec_fallback == "none") return false;
  if (config.ec_fallback == "local") return true;
  return invalid_argument("--ec-fallback ", config.ec_fallback, ": unknown; one of none, local");
}

StatusOr<EcTimes> transfer_times(const EngineConfig& config) {
  if (config.ec_lease_seconds < 1 || config.ec_lease_seconds > kMaxEcLeaseSeconds) {
    return invalid_argument("--ec-lease ", config.ec_lease_seconds, ": expected 1 to ", kMaxEcLeaseSeconds, " seconds");
  }
  EcTimes times;
  times.lease = std::chrono::seconds(config.ec_lease_seconds);
  return times;
}

Status check_instance_config(const EngineConfig& config) {
  if (config.replicas > 1) {
    return invalid_argument("--replicas ", config.replicas,
                            ": an instance of a role has one engine; start several instances");
  }
  RETURN_IF_ERROR(transfer_dtype(config).status());
  RETURN_IF_ERROR(falls_back(config).status());
  return transfer_times(config).status();
}

StatusOr<std::unique_ptr<EncoderEngine>> make_encoder_engine(const LoadedModel& loaded,
                                                             const std::shared_ptr<WeightMap>& weights,
                                                             const ModelRunnerOptions& options,
                                                             EncoderCacheConnector& connector, const Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<EncoderModelRunner> runner,
                   EncoderModelRunner::create(loaded.model_config, weights, options));
  EncoderEngine::Options engine = EncoderEngine::Options::of(runner->info());
  ASSIGN_OR_RETURN(engine.scheduler.max_output_bytes, output_bytes(loaded.config, runner->info()));
  ASSIGN_OR_RETURN(engine.dtype, transfer_dtype(loaded.config));
  ASSIGN_OR_RETURN(engine.senders.times, transfer_times(loaded.config));
  engine.model = loaded.fingerprint;
  engine.max_requests = kMaxEncodeRequests;
  std::random_device random;
  engine.senders.seed = random();
  return std::make_unique<EncoderEngine>(engine, std::move(runner), connector, clock);
}

}  // namespace transept
