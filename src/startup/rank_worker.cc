#include "startup/rank_worker.h"

#include <chrono>
#include <cstring>

#include "base/content_digest.h"
#include "comm/gloo_transport.h"
#include "comm/reduce.h"
#include "layers/split.h"
#include "rank/group_executor.h"
#include "rank/model_runner.h"
#include "rank/rank_agreement.h"
#include "rank/stage_layers.h"
#include "rank/stage_links.h"
#include "startup/choose_device.h"
#include "startup/features.h"
#include "startup/model_files.h"
#include "startup/model_switches.h"
#include "startup/open_weights.h"
#include "startup/rank_report.h"
#include "startup/recognise_model.h"
#include "startup/runner_choices.h"
#include "startup/shortlist_file.h"
#include "startup/tensors_digest.h"

namespace transept {
namespace {

Status check_node_flags(const EngineConfig& config) {
  const int32_t nodes = config.num_nodes;
  if (nodes == 1) return ok_status();
  if (config.num_ranks() % nodes != 0) {
    const bool has_both = config.pipeline_parallel_size > 1 && config.tensor_parallel_size > 1;
    return invalid_argument("--nnodes ", nodes, ": ", config.ranks_flag(),
                            has_both ? str_cat(" of --tensor-parallel-size ", config.tensor_parallel_size) : "",
                            " is not as many ranks on each node");
  }
  if (config.node_rank >= nodes) {
    return invalid_argument("--node-rank ", config.node_rank, ": --nnodes ", nodes, " are 0 to ", nodes - 1);
  }
  if (config.master_addr.empty()) {
    return invalid_argument("--nnodes ", nodes, ": --master-addr HOST has to say where the first rank listens");
  }
  if (!has_gloo()) {
    return unimplemented("--nnodes ", nodes,
                         ": this build has no Gloo: its headers (Debian: libgloo-dev) were not there");
  }
  return ok_status();
}

// As load_engine() does for the first rank.
StatusOr<std::unique_ptr<EncoderDecoderModelRunner>> load_runner(const EngineConfig& config, Communicator& ranks) {
  ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::open(config.model));
  ASSIGN_OR_RETURN(const ModelConfig model, load_switched_config(config, files.folder()));
  RETURN_IF_ERROR(check_features(config, model));
  ASSIGN_OR_RETURN(const GenerationConfig generation, GenerationConfig::load(files.folder(), model));
  ASSIGN_OR_RETURN(RunnerChoices choices, make_runner_choices(config));
  ASSIGN_OR_RETURN(const OpenedWeights opened,
                   open_weights(config, model, std::move(files), reading_rank(config, &ranks)));
  RETURN_IF_ERROR(agree_on_model(ranks, model, *opened.map));
  ASSIGN_OR_RETURN(choices.isa, least_isa(ranks, choices.isa));
  const StoredWeights stored = stored_weights(*opened.map, opened.quantization);
  ASSIGN_OR_RETURN(choices.types, storage_types(config, choices.isa, stored, model.width));
  EncoderDecoderModelRunner::Options options = runner_options(config, choices, ranks.rank());
  ASSIGN_OR_RETURN(options.shortlist, read_shortlist(config.shortlist, model, generation));
  set_ranks(config, &ranks, options);
  return EncoderDecoderModelRunner::create(model, opened.map, options);
}

Status load_and_work(const EngineConfig& config, Communicator& ranks) {
  const auto begin = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(check_rank_flags(config));
  ranks.set_rank_timeout(kRankLoadTimeout);
  ASSIGN_OR_RETURN(const std::unique_ptr<EncoderDecoderModelRunner> runner, load_runner(config, ranks));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  RETURN_IF_ERROR(report_ranks(ranks, config, runner->info(), taken.count()).status());
  ranks.set_rank_timeout(rank_timeout(config));
  runner->pin_caller();
  return run_rank(*runner, ranks);
}

}  // namespace

Duration rank_timeout(const EngineConfig& config) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(config.rank_timeout));
}

Status check_rank_flags(const EngineConfig& config) {
  const int32_t count = config.tensor_parallel_size, stages = config.pipeline_parallel_size;
  RETURN_IF_ERROR(check_node_flags(config));
  if (!config.pipeline_layers.empty() && stages == 1) {
    return invalid_argument("--pipeline-layers ", config.pipeline_layers.substr(0, 100),
                            ": of the stages of --pipeline-parallel-size, which is 1");
  }
  if (config.num_ranks() == 1) return ok_status();
  RETURN_IF_ERROR(check_device_flags(config));
  const auto refused = [&](std::string_view what) { return unimplemented(config.ranks_flag(), ": ", what); };
  if (!has_sum_tree(count)) {
    return unimplemented("--tensor-parallel-size ", count, ": sums of ranks have a tree for 1, 2, 4 or 8");
  }
  if (config.num_ranks() > kMostRanks) {
    return refused(str_cat("of --tensor-parallel-size ", count, " are ", config.num_ranks(), " ranks, and ", kMostRanks,
                           " are the most: --pipeline-parallel-size ", kMostRanks / count, " at most"));
  }
  if (!config.pipeline_layers.empty()) RETURN_IF_ERROR(parse_pipeline_layers(config.pipeline_layers, stages).status());
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

ReadingRank reading_rank(const EngineConfig& config, const Communicator* ranks) {
  if (ranks == nullptr) return {};
  const Ranks of_stage = StagePlace::of(*ranks, config.pipeline_parallel_size).ranks;
  return {of_stage.rank, of_stage.count};
}

namespace {

// Of a tag but its rank.
ContentDigest digest_of_tag(const PackTag* tag) {
  PackTag shared = tag == nullptr ? PackTag() : *tag;
  shared.rank = 0;
  DigestBuilder digest;
  for (const auto& [key, value] : pack_tag_metadata(shared)) {
    digest.add_text(key);
    digest.add_text(value);
  }
  return digest.finish();
}

// A number that ranks compare.
int64_t number_of(const ContentDigest& digest) {
  int64_t value = 0;
  std::memcpy(&value, digest.bytes.data(), sizeof value);
  return value;
}

}  // namespace

Status agree_on_model(Communicator& ranks, const ModelConfig& config, const WeightMap& weights) {
  const PackTag* const tag = weights.pack_tag();
  // Each rank has a part of its own of a packed matrix.
  const auto is_shared = [&](std::string_view name) {
    return tag == nullptr || tag->num_ranks == 1 || !packed_matrix_of(name).has_value();
  };
  const TensorsDigest tensors = digest_of_tensors(weights, is_shared);
  DigestBuilder of_config;
  of_config.add_text(config.raw.dump());
  return check_agreement(
      ranks, std::vector<AgreedNumber>{
                 {"the digest of what `transept pack` packed, model and types,", number_of(digest_of_tag(tag))},
                 {"the number of tensors", tensors.count},
                 {"the digest of config.json", number_of(of_config.finish())},
                 {"the digest of the tensors' names, shapes and first bytes", number_of(tensors.digest)}});
}

void set_ranks(const EngineConfig& config, Communicator* ranks, ModelRunnerOptions& options) {
  options.ranks = ranks;
  options.num_stages = config.pipeline_parallel_size;
  options.pipeline_layers = config.pipeline_layers;
}

StatusOr<Isa> least_isa(Communicator& ranks, Isa isa) {
  ASSIGN_OR_RETURN(const uint64_t least, least_of_ranks(ranks, static_cast<uint64_t>(isa)));
  return static_cast<Isa>(least);
}

Status work_as_rank(const EngineConfig& config, Communicator& ranks) {
  Status ended = load_and_work(config, ranks);
  if (!ended.ok()) ranks.fail(with_prefix(ended, str_cat("rank ", ranks.rank())));
  return ended;
}

}  // namespace transept
