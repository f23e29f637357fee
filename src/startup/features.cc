#include "startup/features.h"

#include <algorithm>

#include "attention/backends.h"
#include "quantized/quantization_config.h"
#include "speculation/speculation_options.h"
#include "startup/choose_device.h"
#include "startup/engine_config.h"

namespace transept {
namespace {

// Which feature a value of a flag asks for. Every value that is known is here, those that are refused too.
struct FlagValue {
  std::string_view flag;
  std::string_view value;
  Feature feature;
};
constexpr FlagValue kFlagValues[] = {
    {"dtype", "auto", Feature::kStoredWeights},
    {"dtype", "float32", Feature::kFloat32},
    {"dtype", "bfloat16", Feature::kBFloat16},
    {"dtype", "float16", Feature::kFloat16},
    {"kv-cache-dtype", "auto", Feature::kFloat32Kv},
    {"kv-cache-dtype", "float32", Feature::kFloat32Kv},
    {"kv-cache-dtype", "bfloat16", Feature::kBFloat16Kv},
    {"kv-cache-dtype", "float16", Feature::kFloat16Kv},
    {"kv-cache-dtype", "int8", Feature::kInt8Kv},
    {"quantization", "auto", Feature::kStoredWeights},
    {"quantization", "none", Feature::kStoredWeights},
    {"quantization", "int8", Feature::kInt8Weights},
    {"quantization", "int4", Feature::kInt4Weights},
    {"quantization", "fp8", Feature::kQuantization},
    {"quantization", "awq", Feature::kQuantization},
    {"quantization", "gptq", Feature::kQuantization},
    {"quantization", "bitsandbytes", Feature::kQuantization},
    {"quantization", "gguf", Feature::kQuantization},
    {"device", "auto", Feature::kCpu},
    {"device", "cpu", Feature::kCpu},
    {"device", "vulkan", Feature::kVulkan},
    {"device", "cuda", Feature::kOtherDevices},
    {"device", "rocm", Feature::kOtherDevices},
    {"device", "xpu", Feature::kOtherDevices},
    {"device", "mps", Feature::kOtherDevices},
    {"device", "tpu", Feature::kOtherDevices},
};

StatusOr<AskedFeature> asked_by_flag(std::string_view flag, const std::string& value) {
  std::vector<std::string> here;
  // Of a device, which one of the kind: vulkan:0, vulkan:NAME.
  const std::string_view kind = flag == "device" ? std::string_view(value).substr(0, value.find(':')) : value;
  for (const FlagValue& known : kFlagValues) {
    if (known.flag != flag) continue;
    const bool has_choice = kind.size() < value.size();
    if (known.value == kind && (!has_choice || known.feature == Feature::kVulkan))
      return AskedFeature{known.feature, str_cat("--", flag, " ", value)};
    if (feature_row(known.feature).refusal.empty()) here.emplace_back(known.value);
  }
  return invalid_argument("--", flag, " ", value, ": unknown; this version has ", join(here, ", "));
}

bool is_given(const Json* value) {
  if (value == nullptr || value->is_null()) return false;
  return !(value->is_bool() && !value->as_bool());
}

Status list_files_features(const ModelConfig& model, std::vector<AskedFeature>& asked) {
  const std::string file = model.path + "/config.json: ";
  ASSIGN_OR_RETURN(const std::optional<QuantizationConfig> quantization, read_quantization(model));
  if (quantization.has_value()) {
    for (const QuantizationConfig::Format& format : quantization->formats) {
      asked.push_back({format.feature, format.where});
    }
  }
  // transformers' use_sliding_window: false leaves a window standing that is not used.
  const Json* use = model.raw.find("use_sliding_window");
  const bool is_off = use != nullptr && use->is_bool() && !use->as_bool();
  for (const char* key : {"sliding_window", "attention_window"}) {
    if (!is_off && is_given(model.raw.find(key))) asked.push_back({Feature::kSlidingWindow, file + key});
  }
  return ok_status();
}

// Every backend, made once.
std::vector<std::unique_ptr<AttentionBackend>> all_backends() {
  std::vector<std::unique_ptr<AttentionBackend>> backends;
  for (const std::string_view name : attention_backend_names()) {
    if (auto backend = make_attention_backend(name); backend.ok()) backends.push_back(std::move(backend).value());
  }
  return backends;
}

// Families that no row tells apart: a column of the table.
struct FamilyColumn {
  std::string name;  // what they take: "text", "audio"
  std::span<const std::string_view> modalities;
  bool crosses;
  std::string families;
};

std::vector<FamilyColumn> family_columns() {
  std::vector<FamilyColumn> columns;
  for (const FamilyTraits& family : family_traits()) {
    const auto same = std::find_if(columns.begin(), columns.end(), [&](const FamilyColumn& column) {
      return std::ranges::equal(column.modalities, family.modalities) && column.crosses == family.crosses;
    });
    if (same != columns.end()) {
      same->families += str_cat(", ", family.model_type);
      continue;
    }
    const std::vector<std::string> taken(family.modalities.begin(), family.modalities.end());
    const std::string name = taken.empty() ? "text" : join(taken, " and ");
    columns.push_back({str_cat(name, family.crosses ? "" : " within the prompt"), family.modalities, family.crosses,
                       std::string(family.model_type)});
  }
  return columns;
}

// One row of the printed table: for every column yes, no, or the backends that have it; and the reasons.
struct PrintedRow {
  std::vector<std::string> cells;
  std::vector<std::string> reasons;  // all different
};

PrintedRow print_row(const FeatureRow& row, const std::vector<FamilyColumn>& columns,
                     const std::vector<std::unique_ptr<AttentionBackend>>& backends) {
  PrintedRow printed;
  const auto note = [&](const std::string& reason) {
    if (std::find(printed.reasons.begin(), printed.reasons.end(), reason) == printed.reasons.end()) {
      printed.reasons.push_back(reason);
    }
  };
  for (const FamilyColumn& column : columns) {
    std::vector<std::string> having;
    for (const auto& backend : backends) {
      const std::string refusal = refusal_of(row.feature, {column.name, column.modalities, column.crosses}, *backend);
      if (refusal.empty()) {
        having.emplace_back(backend->name());
      } else {
        note(refusal);
      }
    }
    const bool all = having.size() == backends.size();
    printed.cells.push_back(all ? "yes" : having.empty() ? "no" : join(having, ", "));
  }
  return printed;
}

// "--a, --b" -> "`--a`, `--b`"; the others as one piece.
std::string asked_by(const FeatureRow& row) {
  std::vector<std::string> parts;
  for (const std::string_view list : {row.flags, row.fields}) {
    for (const std::string_view name : split(list, ',')) {
      if (!trim(name).empty()) parts.push_back(str_cat("`", trim(name), "`"));
    }
  }
  if (!row.others.empty()) parts.push_back(str_cat("`", row.others, "`"));
  return join(parts, ", ");
}

// Of a line of a table; the whole name stands below it.
std::string short_name(std::string_view name) {
  constexpr size_t kMaxBytes = 110;
  if (name.size() <= kMaxBytes) return std::string(name);
  const size_t end = name.find_last_of(",;:", kMaxBytes);
  return str_cat(name.substr(0, end), ", ...");
}

constexpr std::string_view kIntroduction =
    "# What this version does\n\n"
    "Printed by `transept features --markdown` from the table in `src/core/capabilities.h`, which start-up checks "
    "flags "
    "and\nmodel files against; a test compares the two. `yes` holds for every attention backend, else the cell names "
    "those that have\nthe feature. What is refused is refused by the name that asked for it, with the reason given "
    "here.\nBelow each table stands what a feature is asked for by, and why some models do not have it.\n";

}  // namespace

std::string refusal_of(Feature feature, const FamilyTraits& family, const AttentionBackend& backend) {
  const FeatureRow& row = feature_row(feature);
  if (!row.refusal.empty()) return std::string(row.refusal);
  const auto& known = family.modalities;
  if (!row.modality.empty() && std::find(known.begin(), known.end(), row.modality) == known.end()) {
    return str_cat(family.model_type, " models take no ", row.modality);
  }
  const bool reads_text = known.empty() || std::ranges::find(known, "text") != known.end();
  if (row.needs_text_encoder && !reads_text) {
    return str_cat(family.model_type, " models encode ", join({known.begin(), known.end()}, " and "),
                   ": text and token ids are the decoder's");
  }
  if (row.needs_cross_attention && !family.crosses) {
    return str_cat(family.model_type, " models have the encoder's rows within the decoder's prompt, and cross nothing");
  }
  // Whether a backend takes the model's own heads is asked when the model is loaded.
  AttentionCapabilities wanted{.num_heads = 1, .num_kv_heads = 1, .head_dim = 64};
  wanted.kv_dtype = row.kv_dtype.value_or(wanted.kv_dtype);
  wanted.capture = row.needs_attention_capture;
  std::string why;
  return backend.supports(wanted, &why) ? "" : why;
}

StatusOr<std::vector<AskedFeature>> asked_features(const EngineConfig& config, const ModelConfig& model) {
  std::vector<AskedFeature> asked;
  const std::pair<std::string_view, const std::string&> flags[] = {{"dtype", config.dtype},
                                                                   {"kv-cache-dtype", config.kv_cache_dtype},
                                                                   {"quantization", config.quantization},
                                                                   {"device", config.device}};
  for (const auto& [flag, value] : flags) {
    ASSIGN_OR_RETURN(AskedFeature feature, asked_by_flag(flag, value));
    asked.push_back(std::move(feature));
  }
  ASSIGN_OR_RETURN(const SpeculationOptions drafts,
                   settle_speculation(config.speculative_config, config.num_speculative_tokens));
  if (drafts.method == DraftMethod::kModel) {
    asked.push_back({Feature::kDraftModel, "--speculative-config: method model"});
  }
  RETURN_IF_ERROR(list_files_features(model, asked));
  return asked;
}

std::string known_dtype(std::string name) {
  if (name == "half") return "float16";
  if (name == "float") return "float32";
  return name;
}

StatusOr<DType> kv_dtype_of(const EngineConfig& config) {
  ASSIGN_OR_RETURN(const AskedFeature asked, asked_by_flag("kv-cache-dtype", config.kv_cache_dtype));
  return feature_row(asked.feature).kv_dtype.value();
}

Status check_features(const EngineConfig& config, const ModelConfig& model) {
  // What a Vulkan device's own does not have is refused by choose_device().
  ASSIGN_OR_RETURN(const std::unique_ptr<AttentionBackend> backend,
                   make_attention_backend(is_vulkan(config) ? "auto" : config.attention_backend));
  ASSIGN_OR_RETURN(const std::vector<AskedFeature> asked, asked_features(config, model));
  const std::optional<FamilyTraits> family = family_of(model);
  if (!family.has_value()) return ok_status();
  for (const AskedFeature& feature : asked) {
    const std::string refusal = refusal_of(feature.feature, *family, *backend);
    if (!refusal.empty()) return unimplemented(feature.where, ": ", refusal);
  }
  return ok_status();
}

std::string features_markdown() {
  const auto backends = all_backends();
  const std::vector<FamilyColumn> columns = family_columns();
  constexpr size_t kWidth = 150;
  const std::string names = join({attention_backend_names().begin(), attention_backend_names().end()}, ", ");
  std::string out = str_cat(kIntroduction, "\nAttention backends: ", names, ".\n");
  for (const FamilyColumn& column : columns) {
    out += str_cat("\n", column.name, " models: ", column.families, ".\n");
  }
  std::string_view group;
  std::string items;  // of the table before
  for (const FeatureRow& row : kFeatures) {
    if (row.group != group) {
      group = row.group;
      if (!items.empty()) out += "\n" + std::exchange(items, {});
      out += str_cat("\n## ", group, "\n\n| feature |");
      std::string rule = "|---|";
      for (const FamilyColumn& column : columns) {
        out += str_cat(" ", column.name, " |");
        rule += "---|";
      }
      out += str_cat("\n", rule, "\n");
    }
    const PrintedRow printed = print_row(row, columns, backends);
    out += str_cat("| ", short_name(row.name), " | ", join(printed.cells, " | "), " |\n");
    const std::string reasons = printed.reasons.empty() ? "" : str_cat(". ", join(printed.reasons, "; "));
    items += str_cat("* ", wrapped(str_cat(row.name, ": ", asked_by(row), reasons), 2, kWidth), "\n");
  }
  return out + "\n" + items;
}

std::string features_text() {
  constexpr size_t kNameWidth = 64, kCellWidth = 16;
  const auto backends = all_backends();
  const std::vector<FamilyColumn> columns = family_columns();
  const auto padded = [](std::string text, size_t width) {
    text.resize(std::max(width, text.size() + 1), ' ');
    return text;
  };
  std::string out;
  for (const FamilyColumn& column : columns) {
    out += str_cat(column.name, " models: ", column.families, "\n");
  }
  std::string_view group;
  for (const FeatureRow& row : kFeatures) {
    if (row.group != group) {
      group = row.group;
      std::string heading = padded(str_cat(group, ":"), kNameWidth + 2);
      for (const FamilyColumn& column : columns) heading += padded(column.name, kCellWidth);
      out += str_cat("\n", trim(heading), "\n");
    }
    const PrintedRow printed = print_row(row, columns, backends);
    std::string line = padded(str_cat("  ", row.name), kNameWidth + 2);
    for (const std::string& cell : printed.cells) line += padded(cell, kCellWidth);
    line += join(printed.reasons, "; ");
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace transept
