#include "startup/rank_worker.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "comm/reduce.h"
#include "multimodal/input_families.h"
#include "rank/group_executor.h"
#include "rank/model_runner.h"
#include "startup/features.h"
#include "startup/model_files.h"
#include "startup/open_weights.h"
#include "startup/recognise_model.h"
#include "startup/runner_choices.h"
#include "startup/shortlist_file.h"

namespace transept {
namespace {

struct RankReport {
  int64_t pid = 0;
  uint64_t weight_bytes = 0, kv_bytes = 0, step_bytes = 0;
  int64_t num_blocks = 0;
  double seconds = 0;
};

// As load_engine() does for the first rank.
StatusOr<std::unique_ptr<EncoderDecoderModelRunner>> load_runner(const EngineConfig& config, Communicator& ranks) {
  ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::open(config.model));
  ASSIGN_OR_RETURN(const ModelConfig model, load_family_config(files.folder()));
  RETURN_IF_ERROR(check_features(config, model));
  ASSIGN_OR_RETURN(const GenerationConfig generation, GenerationConfig::load(files.folder(), model));
  ASSIGN_OR_RETURN(RunnerChoices choices, make_runner_choices(config));
  ASSIGN_OR_RETURN(const OpenedWeights opened, open_weights(config, model, std::move(files)));
  const StoredWeights stored = stored_weights(*opened.map, opened.quantization);
  ASSIGN_OR_RETURN(choices.types, storage_types(config, choices.isa, stored, model.width));
  EncoderDecoderModelRunner::Options options = runner_options(config, choices, ranks.rank());
  ASSIGN_OR_RETURN(options.shortlist, read_shortlist(config.shortlist, model, generation));
  options.ranks = &ranks;
  return EncoderDecoderModelRunner::create(model, opened.map, options);
}

Status load_and_work(const EngineConfig& config, Communicator& ranks) {
  const auto begin = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(check_rank_flags(config));
  ranks.set_rank_timeout(kRankLoadTimeout);
  ASSIGN_OR_RETURN(const std::unique_ptr<EncoderDecoderModelRunner> runner, load_runner(config, ranks));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  RETURN_IF_ERROR(report_ranks(ranks, runner->info(), taken.count()).status());
  ranks.set_rank_timeout(rank_timeout(config));
  runner->pin_caller();
  return run_rank(*runner, ranks);
}

}  // namespace

Duration rank_timeout(const EngineConfig& config) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(config.rank_timeout));
}

Status check_rank_flags(const EngineConfig& config) {
  const int32_t count = config.tensor_parallel_size;
  if (count == 1) return ok_status();
  const auto refused = [&](std::string_view what) {
    return unimplemented("--tensor-parallel-size ", count, ": ", what);
  };
  if (!has_sum_tree(count)) return refused("sums of ranks have a tree for 1, 2, 4 or 8");
  if (config.replicas > 1) {
    return refused(str_cat("not with --replicas ", config.replicas, ": start several servers, each with its ranks"));
  }
  if (config.encode_slice != "none") {
    return refused(str_cat("not with --encode-slice ", config.encode_slice, ": give --encode-slice none"));
  }
  if (config.debug_loopback_plans) return refused("not with --debug-loopback-plans: plans of ranks are bytes anyway");
  if (config.sizes_only) return refused("a plan of memory is made for one rank");
  return ok_status();
}

Status work_as_rank(const EngineConfig& config, Communicator& ranks) {
  const Status ended = load_and_work(config, ranks);
  if (!ended.ok()) ranks.fail(with_prefix(ended, str_cat("rank ", ranks.rank())));
  return ended;
}

StatusOr<std::vector<std::string>> report_ranks(Communicator& ranks, const ExecutorInfo& info, double load_seconds) {
  RankReport own{.pid = ::getpid(),
                 .kv_bytes = static_cast<uint64_t>(info.num_device_blocks) * info.block_bytes,
                 .step_bytes = info.step_bytes,
                 .num_blocks = info.num_device_blocks,
                 .seconds = load_seconds};
  for (const PackedLayer& layer : info.packed_layers) own.weight_bytes += layer.bytes;
  std::memcpy(ranks.outbox(sizeof own).data(), &own, sizeof own);
  ASSIGN_OR_RETURN(const Communicator::Parts parts, ranks.exchange(sizeof own));
  std::vector<std::string> lines;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    RankReport report;
    std::memcpy(&report, parts[rank].data(), sizeof report);
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.2f", report.seconds);
    lines.push_back(str_cat("rank ", rank, ": pid ", report.pid, ", ", format_bytes(report.weight_bytes),
                            " of weights, ", report.num_blocks, " KV blocks (", format_bytes(report.kv_bytes), "), ",
                            format_bytes(report.step_bytes), " of step memory, after ", seconds, " s"));
  }
  return lines;
}

}  // namespace transept
