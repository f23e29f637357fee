#include "startup/load_engine.h"

#include <algorithm>
#include <filesystem>

#include "base/environment.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/system_memory.h"
#include "encoder_cache/ec_frame.h"
#include "multimodal/input_families.h"
#include "rank/group_executor.h"
#include "rank/local_executor.h"
#include "rank/loopback_executor.h"
#include "rank/model_fingerprint.h"
#include "startup/choose_device.h"
#include "startup/draft_model.h"
#include "startup/encoder_part.h"
#include "startup/features.h"
#include "startup/model_files.h"
#include "startup/model_switches.h"
#include "startup/model_tokenizer.h"
#include "startup/open_weights.h"
#include "startup/rank_worker.h"
#include "startup/recognise_model.h"
#include "startup/runner_choices.h"
#include "startup/shortlist_file.h"
#include "startup/weight_storage.h"
#include "weights/weight_map.h"

namespace transept {
namespace {

StatusOr<PreemptionMode> parse_preemption_mode(const std::string& name) {
  if (name == "auto") return PreemptionMode::kAuto;
  if (name == "recompute") return PreemptionMode::kRecompute;
  if (name == "swap") return PreemptionMode::kSwap;
  return invalid_argument("--preemption-mode ", name, ": unknown; one of auto, recompute, swap");
}

// How long a request waits for its inputs, unless it has a deadline: encode instances may have many before them.
constexpr Duration kMaxWaitForInputs = std::chrono::seconds(300);

// What stays is in blocks whose memory is taken when they are first used. Without a limit a server whose inputs are all
// different would come to hold the whole pool, which is sized for the largest load. Of each replica or rank its part,
// as of the pool.
int32_t max_cached_blocks(const EngineConfig& config, const ExecutorInfo& info) {
  constexpr uint64_t kPartOfMemory = 16;
  const uint64_t bytes = config.encoder_cache_memory.value_or(total_memory_bytes() / kPartOfMemory);
  const uint64_t of_share = bytes / static_cast<uint64_t>(std::max(config.replicas, config.num_ranks()));
  const uint64_t num_blocks = info.block_bytes > 0 ? of_share / info.block_bytes : 0;
  return static_cast<int32_t>(std::min<uint64_t>(num_blocks, static_cast<uint64_t>(info.num_device_blocks)));
}

StatusOr<LLMEngine::Options> engine_options(const EngineConfig& config, const ExecutorInfo& info,
                                            const EncodeSliceOptions& encode_slice) {
  LLMEngine::Options options = LLMEngine::Options::of(info);
  ASSIGN_OR_RETURN(options.scheduler.preemption_mode, parse_preemption_mode(config.preemption_mode));
  options.blocks.watermark = config.watermark;
  options.blocks.share_identical_inputs = config.share_identical_inputs;
  options.blocks.cache_inputs = config.share_identical_inputs && config.caches_inputs;
  options.blocks.cache_prefixes = config.share_identical_inputs && config.caches_prefixes;
  options.blocks.max_cached_blocks = max_cached_blocks(config, info);
  if (config.encoder_cache_ttl.has_value()) {
    options.blocks.cache_ttl =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*config.encoder_cache_ttl));
  }
  options.blocks.track_freed_blocks = config.debug_poison;
  if (config.debug_poison) options.blocks.shuffle_seed = config.seed;
  options.encode_slice = encode_slice;
  options.max_trace_steps = config.max_trace_steps;
  ASSIGN_OR_RETURN(options.speculation, settle_speculation(config.speculative_config, config.num_speculative_tokens));
  RETURN_IF_ERROR(options.scheduler.validate());
  RETURN_IF_ERROR(options.blocks.validate());
  return options;
}

}  // namespace

namespace {

Status load_speech_tokens(LoadedModel& loaded) {
  const auto token_id = [&](std::string_view spelling) {
    return loaded.tokenizer == nullptr ? std::nullopt : loaded.tokenizer->string_to_token(spelling);
  };
  ASSIGN_OR_RETURN(SpeechTokens tokens, SpeechTokens::load(loaded.model_config, loaded.generation, token_id));
  loaded.speech_tokens = std::make_unique<SpeechTokens>(std::move(tokens));
  // The default prompt stands in for it.
  std::erase_if(loaded.generation.unsupported,
                [](const std::string& field) { return field.starts_with("forced_decoder_ids:"); });
  return ok_status();
}

// What an engine is connected to: nothing, other instances, or the ranks that it is the first of.
struct EngineLinks {
  const InstanceLinks* instance = nullptr;
  std::shared_ptr<Communicator> ranks = nullptr;
};

// One for each runner: the first, and its replicas.
Status make_engines(const EngineConfig& config, const RunnerChoices& choices,
                    std::unique_ptr<EncoderDecoderModelRunner> first, LoadedDraftModel draft, const EngineLinks& to,
                    const Clock& clock, LoadedModel& loaded) {
  const InstanceLinks* const links = to.instance;
  const ReplicaCpus& cpus = choices.cpus;
  ASSIGN_OR_RETURN(LLMEngine::Options options, engine_options(config, loaded.info, choices.encode_slice));
  if (links != nullptr) {
    options.remote.connector = links->connector;
    options.remote.asker = links->asker;
    options.remote.model = loaded.fingerprint;
    options.remote.dtype = loaded.info.rows_dtype;
    ASSIGN_OR_RETURN(options.remote.falls_back, falls_back(config));
    ASSIGN_OR_RETURN(options.remote.times, transfer_times(config));
    options.remote.max_wait = kMaxWaitForInputs;
    // A recompute asks for the rows again, unless they are still here.
    PreemptionMode& mode = options.scheduler.preemption_mode;
    if (mode == PreemptionMode::kAuto) mode = PreemptionMode::kSwap;
  }
  const auto executor_of = [&](std::unique_ptr<EncoderDecoderModelRunner> runner) {
    if (to.ranks != nullptr) {
      return std::unique_ptr<Executor>(std::make_unique<GroupExecutor>(std::move(runner), to.ranks));
    }
    std::unique_ptr<Executor> executor = std::make_unique<LocalExecutor>(std::move(runner));
    if (config.debug_loopback_plans) executor = std::make_unique<LoopbackExecutor>(std::move(executor));
    return executor;
  };
  const auto make = [&](std::unique_ptr<Executor> executor, std::unique_ptr<EncoderDecoderModelRunner> drafting) {
    DraftModel model{nullptr, draft.shares_encoder};
    if (drafting != nullptr) model.executor = executor_of(std::move(drafting));
    return std::make_unique<LLMEngine>(options, std::move(executor), loaded.tokenizer.get(), clock, std::move(model));
  };
  for (int32_t i = 1; i < config.replicas; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<EncoderDecoderModelRunner> runner, first->create_replica(cpus.of_replica(i)));
    std::unique_ptr<EncoderDecoderModelRunner> drafting;
    if (draft.runner != nullptr) {
      ASSIGN_OR_RETURN(drafting, draft.runner->create_replica(cpus.of_replica(i)));
    }
    loaded.more_engines.push_back(make(executor_of(std::move(runner)), std::move(drafting)));
  }
  std::unique_ptr<Executor> executor = executor_of(std::move(first));
  if (links != nullptr) RETURN_IF_ERROR(RemoteInputs::check(options.remote, *executor));
  loaded.engine = make(std::move(executor), std::move(draft.runner));
  if (config.replicas > 1)
    log_info("replicas: ", config.replicas,
             " engines over one set of weights; threads, step memory and KV cache are each one's");
  if (!cpus.cpus.empty()) log_info("threads are pinned to processors ", cpus.text());
  if (!choices.may_pin) {
    log_warning("--cpu-affinity ", config.cpu_affinity, ": the system does not let this process choose its processors ",
                "(sched_setaffinity): no thread is pinned");
  }
  return ok_status();
}

// `no_tokenizer` becomes the reason if there is none.
Status load_tokenizer_of(LoadedModel& loaded, std::string& no_tokenizer) {
  const std::string& model = loaded.config.model;
  StatusOr<std::unique_ptr<Tokenizer>> tokenizer = tokenizer_of(loaded.model_config);
  if (tokenizer.ok()) {
    loaded.tokenizer = std::move(tokenizer).value();
    return ok_status();
  }
  no_tokenizer = error_message(tokenizer.status());
  if (!absl::IsNotFound(tokenizer.status()) && !absl::IsUnimplemented(tokenizer.status())) {
    return with_tokenizer_folder(tokenizer.status(), model);
  }
  // No tokenizer files at all, or of a kind that is not supported: ids still work.
  log_warning(model, ": ", no_tokenizer, ": only token ids can be given");
  return ok_status();
}

// What is encoded, asked for and sent has to be of one model in all instances.
Status make_fingerprint(const WeightMap& weights, const StorageTypes& types, LoadedModel& loaded) {
  ASSIGN_OR_RETURN(const DType dtype, transfer_dtype(loaded.config));
  const std::vector<KindOfInstance> kinds = kinds_of_instances(types.weights);
  std::vector<FingerprintOptions> options;
  options.reserve(kinds.size());
  for (const KindOfInstance& kind : kinds) options.push_back(kind.options);
  ASSIGN_OR_RETURN(const auto models, model_fingerprints(loaded.model_config, weights, options));
  loaded.fingerprint = with_transfer_dtype(models.front(), dtype);
  const DType other = other_transfer_dtype(dtype);
  const std::string rows = str_cat("has --ec-transfer-dtype ", dtype_name(other), ", and this one ", dtype_name(dtype));
  for (size_t i = 0; i < kinds.size(); ++i) {
    const std::string& what = kinds[i].what;
    if (i > 0) loaded.other_fingerprints.emplace_back(with_transfer_dtype(models[i], dtype), what);
    loaded.other_fingerprints.emplace_back(with_transfer_dtype(models[i], other),
                                           i > 0 ? str_cat(what, "; it ", rows) : rows);
  }
  return ok_status();
}

void take_info(const ExecutorInfo& info, const RunnerChoices& choices, LoadedModel& loaded) {
  loaded.info = info;
  set_storage_flags(info.weight_storage, loaded.config);
  for (const std::string& line : info.report) log_info(line);
  if (!choices.types.report.empty()) log_info(choices.types.report);
  const std::string faster = faster_storage_note(info.packed_layers, info.isa);
  if (!faster.empty()) log_info(faster);
}

// Brings the other ranks to the point where they wait for plans.
Status begin_ranks(const EngineConfig& config, Communicator& ranks, TimePoint load_begin, LoadedModel& loaded) {
  const double taken = seconds(std::chrono::steady_clock::now() - load_begin);
  ASSIGN_OR_RETURN(loaded.ranks, report_ranks(ranks, config, loaded.info, taken));
  for (size_t rank = 0; rank < loaded.ranks.size(); ++rank) {
    log_info(loaded.ranks[rank].text(static_cast<int>(rank)));
  }
  ranks.set_rank_timeout(rank_timeout(config));
  return ok_status();
}

Status load_engines(const EngineConfig& config, ModelFiles files, const EngineLinks& to, const Clock& clock,
                    LoadedModel& loaded) {
  const TimePoint begin = std::chrono::steady_clock::now();
  const InstanceLinks* const links = to.instance;
  if (links != nullptr && is_vulkan(config)) {
    return unimplemented("--device ", config.device, ": not with --epd or --role: they are the processor's alone");
  }
  if (const int32_t count = num_packed_ranks(config.model); config.sizes_only && count > 1) {
    return unimplemented(config.model, ": is packed for --tensor-parallel-size ", count,
                         ", and a plan of memory is made for one rank: give the original model");
  }
  ASSIGN_OR_RETURN(RunnerChoices choices, make_runner_choices(config));
  loaded.device = choices.device;
  ASSIGN_OR_RETURN(const OpenedWeights opened,
                   open_weights(config, loaded.model_config, std::move(files), reading_rank(config, to.ranks.get())));
  const std::shared_ptr<WeightMap>& weights = opened.map;
  if (to.ranks != nullptr) {
    to.ranks->set_rank_timeout(kRankLoadTimeout);
    RETURN_IF_ERROR(agree_on_model(*to.ranks, loaded.model_config, *weights));
    ASSIGN_OR_RETURN(choices.isa, least_isa(*to.ranks, choices.isa));
  }
  const StoredWeights stored = stored_weights(*weights, opened.quantization);
  ASSIGN_OR_RETURN(choices.types, storage_types(config, choices.isa, stored, loaded.model_config.width));
  EncoderDecoderModelRunner::Options options = runner_options(config, choices);
  if (links != nullptr) RETURN_IF_ERROR(make_fingerprint(*weights, choices.types, loaded));
  if (links != nullptr && links->role == InstanceRole::kEncode) {
    ASSIGN_OR_RETURN(loaded.encoder_engine, make_encoder_engine(loaded, weights, options, *links->connector, clock));
    take_info(loaded.encoder_engine->executor().info(), choices, loaded);
    return ok_status();
  }
  ASSIGN_OR_RETURN(options.shortlist, read_shortlist(config.shortlist, loaded.model_config, loaded.generation));
  options.shortlist.max_parts = config.shortlist_parts;
  if (links != nullptr) {
    ASSIGN_OR_RETURN(const bool encodes, falls_back(config));
    if (!encodes) options.part = ModelPart::kDecoder;
    options.takes_remote_rows = true;
    ASSIGN_OR_RETURN(options.remote_rows_dtype, transfer_dtype(config));
  }
  set_ranks(config, to.ranks.get(), options);
  ASSIGN_OR_RETURN(const OpenedDraftModel draft,
                   open_draft_model(config, loaded.model_config, *weights, loaded.tokenizer.get()));
  options.reserved_memory = draft.memory();
  ASSIGN_OR_RETURN(std::unique_ptr<EncoderDecoderModelRunner> runner,
                   EncoderDecoderModelRunner::create(loaded.model_config, weights, options));
  take_info(runner->info(), choices, loaded);
  ASSIGN_OR_RETURN(LoadedDraftModel drafting,
                   load_draft_model(draft, config, choices, loaded.info, loaded.model_config, *weights));
  if (to.ranks != nullptr) RETURN_IF_ERROR(begin_ranks(config, *to.ranks, begin, loaded));
  return make_engines(config, choices, std::move(runner), std::move(drafting), to, clock, loaded);
}

Status check_ranks(const EngineConfig& config, const EngineLinks& to) {
  RETURN_IF_ERROR(check_rank_flags(config));
  const int32_t count = config.num_ranks();
  if (count > 1 && to.instance != nullptr) {
    return unimplemented(config.ranks_flag(), ": not with --epd or --role: give 1");
  }
  if (count > 1 && to.ranks == nullptr) {
    return unimplemented(config.ranks_flag(), ": this runs one rank alone: give 1");
  }
  CHECK(to.ranks == nullptr || (to.ranks->size() == count && to.ranks->rank() == 0));
  return ok_status();
}

// A draft model is beside one that is whole in this process.
Status check_draft_model(const EngineConfig& config, const EngineLinks& to) {
  if (to.instance == nullptr && to.ranks == nullptr) return ok_status();
  ASSIGN_OR_RETURN(const SpeculationOptions options,
                   settle_speculation(config.speculative_config, config.num_speculative_tokens));
  if (options.method != DraftMethod::kModel) return ok_status();
  return unimplemented("--speculative-config: method model: not with ",
                       to.instance != nullptr ? "--epd or --role" : "a model over several ranks",
                       ": it drafts for a model that is whole in one process");
}

StatusOr<LoadedModel> load_checked(const EngineConfig& config, const EngineLinks& to, const Clock& clock) {
  const InstanceLinks* const links = to.instance;
  RETURN_IF_ERROR(check_ranks(config, to));
  RETURN_IF_ERROR(check_draft_model(config, to));
  LoadedModel loaded;
  loaded.config = config;
  ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::open(config.model));
  ASSIGN_OR_RETURN(loaded.model_config, load_switched_config(config, files.folder()));
  RETURN_IF_ERROR(check_features(config, loaded.model_config));
  if (links != nullptr) RETURN_IF_ERROR(check_instance_config(config));
  ASSIGN_OR_RETURN(std::shared_ptr<const HeaderFont> header_font, load_header_font(config.header_font));
  ASSIGN_OR_RETURN(loaded.generation, GenerationConfig::load(files.folder(), loaded.model_config));
  std::string no_tokenizer;
  RETURN_IF_ERROR(load_tokenizer_of(loaded, no_tokenizer));
  const InputFamily* family = find_input_family(loaded.model_config);
  const bool takes_media = family != nullptr && (family->make_audio != nullptr || family->make_image != nullptr);
  const auto owner = takes_media ? ChatTemplateOwner::kProcessor : ChatTemplateOwner::kTokenizer;
  ASSIGN_OR_RETURN(loaded.chat_prompts, ChatPrompts::load(config.model, owner, config.chat_template));
  RETURN_IF_ERROR(load_engines(config, std::move(files), to, clock, loaded));
  const ExecutorInfo& info = loaded.info;
  ASSIGN_OR_RETURN(const Isa isa, parse_isa(config.isa));
  ASSIGN_OR_RETURN(loaded.media, MultiModalRegistry::create(loaded.model_config, isa, header_font));
  if (family != nullptr && family->default_prompt == DefaultPrompt::kTranscript) {
    RETURN_IF_ERROR(load_speech_tokens(loaded));
  }
  const PromptProcessor::Limits limits{info.max_encoder_len, info.max_decoder_len};
  loaded.prompts = std::make_unique<PromptProcessor>(
      loaded.model_config, loaded.generation, info.spec, limits,
      PromptProcessor::Parts{
          loaded.tokenizer.get(), no_tokenizer,
          loaded.media->audio() != nullptr || loaded.media->image() != nullptr ? loaded.media.get() : nullptr,
          loaded.speech_tokens.get(), config.media_limits});
  return loaded;
}

StatusOr<LoadedModel> load_and_explain(const EngineConfig& config, const EngineLinks& to, const Clock& clock) {
  StatusOr<LoadedModel> loaded = load_checked(config, to, clock);
  if (loaded.ok()) return loaded;
  if (to.ranks != nullptr) to.ranks->fail(loaded.status());
  return blame_environment(explain_model_error(loaded.status(), config.model), config.from_environment);
}

}  // namespace

StatusOr<LoadedModel> load_engine(const EngineConfig& config, const Clock& clock) {
  return load_and_explain(config, {}, clock);
}

StatusOr<LoadedModel> load_engine(const EngineConfig& config, const Clock& clock, const InstanceLinks& links) {
  return load_and_explain(config, {.instance = &links}, clock);
}

StatusOr<LoadedModel> load_engine(const EngineConfig& config, const Clock& clock, std::shared_ptr<Communicator> ranks) {
  return load_and_explain(config, {.ranks = std::move(ranks)}, clock);
}

}  // namespace transept
