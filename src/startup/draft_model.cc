#include "startup/draft_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/content_digest.h"
#include "base/log.h"
#include "base/quoted.h"
#include "base/strings.h"
#include "base/system_memory.h"
#include "models/registry.h"
#include "multimodal/input_families.h"
#include "speculation/speculation_options.h"
#include "startup/choose_device.h"
#include "startup/features.h"
#include "startup/model_files.h"
#include "startup/model_tokenizer.h"
#include "startup/open_weights.h"
#include "startup/recognise_model.h"
#include "startup/weight_storage.h"

namespace transept {
namespace {

// Of a KV cache whose size was asked for, and of the machine's free memory.
constexpr uint64_t kShareOfAsked = 4, kShareOfFree = 8;
// Its steps feed a token a sequence, but for what it has not seen.
constexpr int32_t kUsualTokens = 512;

Status of_draft(const Status& status) { return with_prefix(status, "--speculative-config: model"); }

template <typename... Args>
Status refuse(const std::string& folder, const Args&... why) {
  return invalid_argument("--speculative-config: model: ", folder, ": ", why...);
}

std::string spelling(const Tokenizer& tokenizer, int32_t id, TokenizerSide side) {
  if (id >= tokenizer.vocab_size()) return "not there";
  return in_quotes(tokenizer.side_token_to_string(id, side));
}

// Errors name the first id that differs.
Status check_vocabulary(const std::string& folder, const ModelConfig& draft, const Tokenizer* draft_tokenizer,
                        const ModelConfig& model, const Tokenizer* tokenizer) {
  if (tokenizer != nullptr && draft_tokenizer != nullptr) {
    const int32_t most = std::max(tokenizer->vocab_size(), draft_tokenizer->vocab_size());
    for (int32_t id = 0; id < most; ++id) {
      for (const TokenizerSide side : {TokenizerSide::kDecoder, TokenizerSide::kEncoder}) {
        const std::string here = spelling(*tokenizer, id, side), there = spelling(*draft_tokenizer, id, side);
        if (here == there) continue;
        return refuse(folder, "another vocabulary than ", model.path, ": id ", id, " is ", there, ", and here ", here);
      }
    }
  }
  for (const auto& [here, there] :
       {std::pair(model.vocab_size, draft.vocab_size), std::pair(model.decoder_vocab_size, draft.decoder_vocab_size)}) {
    if (here == there) continue;
    return refuse(folder, "another vocabulary than ", model.path, ": ", there, " ids, and here ", here, ": id ",
                  std::min(here, there), " is only in the one");
  }
  return ok_status();
}

// The name of a family, for comparison.
std::string family_name(const ModelConfig& config) {
  const std::optional<FamilyTraits> family = family_of(config);
  return family.has_value() ? std::string(family->model_type) : config.model_type;
}

std::string_view without(std::string_view name, std::string_view beginning) {
  return name.starts_with(beginning) ? name.substr(beginning.size()) : name;
}

// Of a tensor's name, without the prefix that a file may have or not have.
bool is_decoders(std::string_view name) {
  for (const std::string_view part : {"decoder", "text_decoder", "lm_head", "proj_out", "final_logits_bias"}) {
    if (name == part || name.starts_with(str_cat(part, "."))) return true;
  }
  return false;
}

using Digests = std::map<std::string, ContentDigest>;  // of tensors, by name

// Of what is not the decoder's, with at most `max_bytes` of each tensor.
Digests digests_of_encoder(const WeightMap& weights, size_t max_bytes) {
  Digests digests;
  const auto is_wanted = [](std::string_view name) { return !is_decoders(without(name, "model.")); };
  weights.visit_samples(max_bytes, is_wanted, [&](const WeightMap::Sample& sample) {
    DigestBuilder digest;
    digest.add_text(sample.dtype);
    digest.add_number(std::ssize(sample.shape));
    for (const int64_t axis : sample.shape) digest.add_number(axis);
    digest.add_number(std::ssize(sample.bytes));
    digest.add_bytes(sample.bytes);
    digests.emplace(without(sample.name, "model."), digest.finish());
  });
  return digests;
}

// Keys of config.json that change nothing that an encoder computes: the decoder's, those of generation, training and
// the writing program. num_hidden_layers is a second name of encoder_layers where there is one.
bool is_of_encoder(std::string_view key, bool has_encoder_layers) {
  constexpr std::string_view kOthers[] = {
      "_name_or_path", "architectures",    "transformers_version",  "torch_dtype",          "dtype",
      "init_std",      "use_cache",        "apply_spec_augment",    "is_encoder_decoder",   "tie_word_embeddings",
      "max_length",    "suppress_tokens",  "begin_suppress_tokens", "max_target_positions", "median_filter_width",
      "num_beams",     "max_target_length"};
  if (has_encoder_layers && key == "num_hidden_layers") return false;
  if (std::ranges::find(kOthers, key) != std::end(kOthers)) return false;
  for (const std::string_view part : {"decoder", "forced_", "mask_", "classifier", "num_decoder", "task_specific"}) {
    if (key.starts_with(part)) return false;
  }
  for (const std::string_view part : {"token_id", "dropout", "layerdrop", "decoder_ids"}) {
    if (key.ends_with(part)) return false;
  }
  return true;
}

bool says_same(const Json& config, const Json& other) {
  const bool has_encoder_layers = config.find("encoder_layers") != nullptr;
  for (const auto& [key, value] : config.as_object()) {
    if (!is_of_encoder(key, has_encoder_layers)) continue;
    const Json* theirs = other.find(key);
    if (theirs == nullptr ? !value.is_null() : theirs->dump() != value.dump()) return false;
  }
  return true;
}

// What is encoded has to have one form, unless the target's encoder alone encodes.
bool takes_same_inputs(const ModelSpec& spec, const ModelConfig& draft, const ModelSpec& of_target,
                       const ModelConfig& model) {
  if (spec.encoder_takes_ids()) return spec.encoder_vocab() == of_target.encoder_vocab();
  const auto num_bins = [](const ModelConfig& config) {
    const Json* value = config.raw.find("num_mel_bins");
    return value != nullptr && value->is_int() ? value->as_int() : -1;
  };
  return num_bins(draft) >= 0 && num_bins(draft) == num_bins(model) && spec.modalities == of_target.modalities &&
         spec.max_encoder_positions == of_target.max_encoder_positions;
}

}  // namespace

uint64_t OpenedDraftModel::memory() const { return weights == nullptr ? 0 : kv_memory + weights->total_bytes(); }

StatusOr<OpenedDraftModel> open_draft_model(const EngineConfig& config, const ModelConfig& model,
                                            const WeightMap& weights, const Tokenizer* tokenizer) {
  OpenedDraftModel opened;
  ASSIGN_OR_RETURN(const SpeculationOptions options,
                   settle_speculation(config.speculative_config, config.num_speculative_tokens));
  if (options.method != DraftMethod::kModel || options.num_speculative_tokens == 0) return opened;
  if (is_vulkan(config)) {
    return unimplemented("--speculative-config: method model: not with --device ", config.device,
                         ": draft models are the processor's alone");
  }
  opened.folder = config.draft_model.empty() ? options.model : config.draft_model;
  const auto explain = [&](const Status& status) { return of_draft(explain_model_error(status, opened.folder)); };
  StatusOr<ModelFiles> files = ModelFiles::open(opened.folder);
  if (!files.ok()) return explain(files.status());
  StatusOr<LoadedTokenizer> loaded = load_model_tokenizer(opened.folder);
  const bool has_none = absl::IsNotFound(loaded.status()) || absl::IsUnimplemented(loaded.status());
  if (!loaded.ok() && !has_none) return explain(loaded.status());
  if (loaded.ok()) {
    opened.model_config = std::move(loaded->model_config);
  } else {
    StatusOr<ModelConfig> read = load_family_config(files->folder());
    if (!read.ok()) return explain(read.status());
    opened.model_config = std::move(read).value();
  }
  EngineConfig own_config = config;
  own_config.model = opened.folder;
  if (const Status known = check_features(own_config, opened.model_config); !known.ok()) return of_draft(known);
  if (const std::string here = family_name(model), there = family_name(opened.model_config); here != there) {
    return refuse(opened.folder, "a model of another family (", there, ") than ", model.path, " (", here, ")");
  }
  RETURN_IF_ERROR(check_vocabulary(opened.folder, opened.model_config, loaded.ok() ? loaded->tokenizer.get() : nullptr,
                                   model, tokenizer));
  StatusOr<OpenedWeights> map = open_weights(config, opened.model_config, std::move(files).value());
  if (!map.ok()) return explain(map.status());
  opened.weights = std::move(map->map);
  opened.quantization = std::move(map->quantization);
  opened.kv_memory = config.kv_cache_memory.has_value() ? *config.kv_cache_memory / kShareOfAsked
                                                        : available_memory_bytes() / kShareOfFree;
  if (const size_t here = weights.total_bytes(), there = opened.weights->total_bytes(); there > here) {
    log_warning("--speculative-config: model: ", opened.folder, " has more weights (", format_bytes(there), ") than ",
                model.path, " (", format_bytes(here), "), for which it drafts: drafts cost more than they save");
  }
  return opened;
}

bool has_same_encoder(const ModelConfig& model, const WeightMap& weights, const ModelConfig& draft,
                      const WeightMap& draft_weights) {
  constexpr size_t kFirstBytes = size_t{4} << 10;  // most encoders differ there
  if (!says_same(model.raw, draft.raw) || !says_same(draft.raw, model.raw)) return false;
  for (const size_t max_bytes : {kFirstBytes, SIZE_MAX}) {
    if (digests_of_encoder(weights, max_bytes) != digests_of_encoder(draft_weights, max_bytes)) return false;
  }
  return true;
}

StatusOr<LoadedDraftModel> load_draft_model(const OpenedDraftModel& opened, const EngineConfig& config,
                                            const RunnerChoices& choices, const ExecutorInfo& info,
                                            const ModelConfig& model, const WeightMap& weights) {
  LoadedDraftModel loaded;
  if (opened.weights == nullptr) return loaded;
  if (info.spec.consumers() != Consumers::kCross || !info.spec.every_layer_crosses() || info.spec.position_axes != 1) {
    return unimplemented("--speculative-config: method model: not for models of family ", info.spec.family,
                         ", whose decoder does more than to cross an encoder's rows in every layer");
  }
  EngineConfig of_draft_model = config;
  of_draft_model.model = opened.folder;
  RunnerChoices own = choices;
  ASSIGN_OR_RETURN(own.types,
                   storage_types(of_draft_model, choices.isa, stored_weights(*opened.weights, opened.quantization),
                                 opened.model_config.width));
  // A step of a small model mostly reads keys and values. A guess that their rounding spoils costs its row alone.
  if (config.kv_cache_dtype == "auto") own.types.kv = DType::kInt8;
  ModelRunnerOptions options = runner_options(of_draft_model, own);
  loaded.shares_encoder = has_same_encoder(model, weights, opened.model_config, *opened.weights);
  if (loaded.shares_encoder) options.part = ModelPart::kDecoder;
  options.max_num_batched_tokens = std::min(config.max_num_batched_tokens, std::max(config.max_num_seqs, kUsualTokens));
  options.max_model_len = std::max(info.max_encoder_len, info.max_decoder_len);
  options.max_model_len_may_exceed = true;
  options.kv_cache_memory.reset();
  options.kv_memory_limit = opened.kv_memory;
  options.swap_space = 0;
  options.watermark = 0;
  options.has_long_encodes = false;
  StatusOr<std::unique_ptr<EncoderDecoderModelRunner>> runner =
      EncoderDecoderModelRunner::create(opened.model_config, opened.weights, options);
  if (!runner.ok()) return of_draft(runner.status());
  const ModelSpec& spec = (*runner)->info().spec;
  if (!loaded.shares_encoder && !takes_same_inputs(spec, opened.model_config, info.spec, model)) {
    return refuse(opened.folder, "its encoder takes other inputs than that of ", model.path);
  }
  if (spec.vocab_size != info.spec.vocab_size || spec.prompt_vocab() != info.spec.prompt_vocab()) {
    return refuse(opened.folder, "another vocabulary than ", model.path, ": ", spec.vocab_size, " ids, and here ",
                  info.spec.vocab_size);
  }
  log_info("draft model: ", opened.folder,
           loaded.shares_encoder ? ": its encoder is the model's own, which runs once for both" : "");
  for (const std::string& line : (*runner)->info().report) log_info("draft model: ", line);
  loaded.runner = std::move(runner).value();
  return loaded;
}

}  // namespace transept
