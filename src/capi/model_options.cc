#include "capi/model_options.h"

#include <algorithm>

#include "capi/option_table.h"
#include "request/field_reader.h"
#include "startup/engine_ranges.h"
#include "startup/features.h"
#include "startup/find_model.h"

namespace transept {
namespace {

constexpr double kMaxBytes = 9e18;

template <auto member>
OptionSlot slot(ModelOptions& config) {
  return &(config.*member);
}

using C = ModelOptions;
constexpr OptionRow<ModelOptions> kRows[] = {
    {"attention_backend", slot<&C::attention_backend>},
    {"block_size", slot<&C::block_size>, 1, kMaxBlockSize},
    {"cpu_affinity", slot<&C::cpu_affinity>},
    {"device", slot<&C::device>},
    {"download_dir", slot<&C::download_dir>},
    {"dtype", slot<&C::dtype>},
    {"encode_slice", slot<&C::encode_slice>},
    {"header_font", slot<&C::header_font>},
    {"hf_token", slot<&C::hf_token>},
    {"isa", slot<&C::isa>},
    {"kv_cache_dtype", slot<&C::kv_cache_dtype>},
    {"kv_cache_memory", slot<&C::kv_cache_memory>, 0, kMaxBytes},
    {"local_files_only", slot<&C::local_files_only>},
    {"max_model_len", slot<&C::max_model_len>, 1, kMaxEngineCount},
    {"max_num_batched_tokens", slot<&C::max_num_batched_tokens>, 1, kMaxEngineCount},
    {"max_num_encoder_tokens", slot<&C::max_num_encoder_tokens>, 1, kMaxEngineCount},
    {"max_num_seqs", slot<&C::max_num_seqs>, 1, kMaxNumSeqs},
    {"mllama_strict_mask", slot<&C::mllama_strict_mask>},
    {"preemption_mode", slot<&C::preemption_mode>},
    {"quantization", slot<&C::quantization>},
    {"replicas", slot<&C::replicas>, 1, kMaxReplicas},
    {"revision", slot<&C::revision>},
    {"seed", slot<&C::seed>, 0, kMaxBytes},
    {"share_identical_inputs", slot<&C::share_identical_inputs>},
    {"shortlist", slot<&C::shortlist>},
    {"swap_space", slot<&C::swap_space>, 0, kMaxBytes},
    {"threads", slot<&C::threads>, 0, kMaxThreads},
    {"watermark", slot<&C::watermark>},
};

// Names and paths end at a NUL where they are used.
Status check_no_nul(const Json& options) {
  for (const auto& [name, value] : options.as_object()) {
    if (value.is_string() && value.as_string().find('\0') != std::string::npos) {
      return field_error(name, str_cat(name, " must be a string without a NUL, not ", shown(value)));
    }
  }
  return ok_status();
}

// The option of the flag "kv-cache-dtype"; "": there is none.
std::string option_of_flag(std::string_view flag) {
  std::string name(flag);
  std::ranges::replace(name, '-', '_');
  const bool is_option = std::ranges::any_of(kRows, [&](const auto& row) { return row.name == name; });
  return is_option ? name : "";
}

}  // namespace

Status in_words_of_options(const Status& status) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz-";
  std::string message = error_message(status), field = error_param(status);
  for (size_t at = message.find("--"); at != std::string::npos; at = message.find("--", at + 1)) {
    const size_t begin = at + 2, end = std::min(message.find_first_not_of(kLetters, begin), message.size());
    const std::string option = option_of_flag(std::string_view(message).substr(begin, end - begin));
    const bool is_word = at == 0 || message[at - 1] == ' ' || message[at - 1] == '(';  // and no part of a path
    if (option.empty() || !is_word) continue;
    message.replace(at, end - at, option);
    if (at == 0 && field.empty()) field = option;
  }
  if (status.ok() || message == status.message()) return status;
  const Status said(status.code(), message);
  return field.empty() ? said : with_param(said, field);
}

StatusOr<ModelOptions> model_options_of(const Json& options) {
  ModelOptions config;
  RETURN_IF_ERROR(read_options(options, kRows, "a model", config));
  RETURN_IF_ERROR(check_no_nul(options));
  const Json* folder = options.find("download_dir");
  if (folder != nullptr && folder->is_string() && folder->as_string().empty()) {
    return field_error("download_dir", "download_dir must be a folder, not nothing");
  }
  config.dtype = known_dtype(config.dtype);
  const Json* quantization = options.find("quantization");
  config.quantization_given = quantization != nullptr && !quantization->is_null();
  if (!(config.watermark >= 0 && config.watermark <= kMaxWatermark)) {
    return field_error("watermark", str_cat("watermark must be a number from 0 to 0.99, not ", config.watermark));
  }
#ifdef TRANSEPT_POISON
  config.debug_poison = true;
#endif
  return config;
}

StatusOr<std::string> model_folder_of(const std::string& name, const ModelOptions& options,
                                      const OnDownload& on_download) {
  FindModelOptions find;
  find.on_progress = on_download;
  find.revision = options.revision;
  find.hub_settings = [&]() -> StatusOr<HubSettings> {
    ASSIGN_OR_RETURN(HubSettings settings, HubSettings::from_environment());
    if (!options.download_dir.empty()) settings.cache_dir = options.download_dir;
    settings.make_cache_dir_absolute();
    if (options.local_files_only) settings.offline_by = "the option local_files_only";
    if (!options.hf_token.empty()) RETURN_IF_ERROR(settings.use_token(options.hf_token, "the option hf_token"));
    return settings;
  };
  return find_model(name, find);
}

}  // namespace transept
