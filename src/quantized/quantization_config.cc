#include "quantized/quantization_config.h"

#include <algorithm>
#include <filesystem>

#include "core/config_file.h"
#include "quantized/quant_methods.h"

namespace transept {
namespace {

constexpr int64_t kMaxGroupSize = int64_t{1} << 24;
constexpr size_t kMaxModules = 100'000;

void add_format(QuantizationConfig& config, Feature feature, std::string_view field) {
  config.formats.push_back({feature, field.empty() ? config.file : str_cat(config.file, ": ", field)});
}

std::string group_text(int64_t group) {
  return group == 0 ? std::string(" by channel") : str_cat(" in groups of ", group);
}

// A group's size: -1 is all inputs.
StatusOr<int64_t> read_group(const ConfigReader& reader, std::string_view key, std::string_view other_key) {
  const std::string_view present = reader.has(key) ? key : reader.has(other_key) ? other_key : key;
  ASSIGN_OR_RETURN(const int64_t size, reader.integer(present, -1, kMaxGroupSize));
  if (size == 0) return reader.error(present, "expected -1, for all inputs, or a size");
  return std::max<int64_t>(size, 0);
}

Status read_gptq(const Json& object, const ConfigReader& reader, QuantizationConfig& config) {
  GptqConfig gptq;
  const std::string_view key = reader.has("checkpoint_format") ? "checkpoint_format" : "format";
  ASSIGN_OR_RETURN(const std::string layout, reader.string(key, std::string("gptq")));
  ASSIGN_OR_RETURN(const bool is_marlin, reader.boolean("is_marlin_format", false));
  if (layout != "gptq" && layout != "gptq_v2") {
    add_format(config, Feature::kKernelLayouts, str_cat(key, ": ", layout.substr(0, 60)));
    return ok_status();
  }
  if (is_marlin) {
    add_format(config, Feature::kKernelLayouts, "is_marlin_format");
    return ok_status();
  }
  gptq.zeros_less_1 = layout == "gptq";
  ASSIGN_OR_RETURN(const int64_t bits, reader.integer("bits", 1, 64));
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8) {
    return reader.error("bits", str_cat("expected 2, 3, 4 or 8, got ", bits));
  }
  gptq.bits = static_cast<int32_t>(bits);
  ASSIGN_OR_RETURN(gptq.group, read_group(reader, "group_size", "group_size"));
  ASSIGN_OR_RETURN(const bool is_permuted, reader.boolean("desc_act", false));
  gptq.in_order = !is_permuted;
  ASSIGN_OR_RETURN(const std::string words, reader.string("pack_dtype", std::string("int32")));
  if (words != "int32") return reader.error("pack_dtype", str_cat("expected int32, got ", words.substr(0, 60)));
  // gptqmodel's overrides by module: "-:" leaves a module out, which its tensors show, too.
  if (const Json* overrides = object.find("dynamic"); overrides != nullptr && overrides->is_object()) {
    for (const auto& [module, values] : overrides->as_object()) {
      if (!module.starts_with("-:")) {
        return reader.error("dynamic", str_cat("\"", module.substr(0, 200), "\": overrides of modules are not read"));
      }
    }
  }
  add_format(config, Feature::kGptq, "");
  config.name =
      str_cat("gptq, ", bits, " bits", group_text(gptq.group), is_permuted ? ", inputs in another order" : "");
  config.settings = gptq;
  return ok_status();
}

Status read_awq(const ConfigReader& reader, QuantizationConfig& config) {
  AwqConfig awq;
  ASSIGN_OR_RETURN(std::string version, reader.string("version", std::string("gemm")));
  std::ranges::transform(version, version.begin(),
                         [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  if (version != "gemm") {
    add_format(config, Feature::kKernelLayouts, str_cat("version: ", version.substr(0, 60)));
    return ok_status();
  }
  const std::string_view bits_key = reader.has("w_bit") ? "w_bit" : "bits";
  ASSIGN_OR_RETURN(const int64_t bits, reader.integer(bits_key, 1, 64));
  if (bits != 4) return reader.error(bits_key, str_cat("expected 4, got ", bits));
  ASSIGN_OR_RETURN(awq.group, read_group(reader, "group_size", "q_group_size"));
  ASSIGN_OR_RETURN(const bool has_zero, reader.boolean("zero_point", true));
  if (!has_zero) return reader.error("zero_point", "files of version gemm have zero points");
  add_format(config, Feature::kAwq, "");
  config.name = str_cat("awq, 4 bits", group_text(awq.group));
  config.settings = awq;
  return ok_status();
}

Status read_bitsandbytes(const ConfigReader& reader, QuantizationConfig& config) {
  ASSIGN_OR_RETURN(const bool is_4bit, reader.boolean("load_in_4bit", false));
  ASSIGN_OR_RETURN(const bool is_8bit, reader.boolean("load_in_8bit", false));
  if (is_4bit && is_8bit) return reader.error("load_in_8bit", "is true beside load_in_4bit");
  // A checkpoint that says neither has its weights by the names of its tensors all the same.
  add_format(config, is_4bit ? Feature::kBitsandbytes4 : Feature::kBitsandbytes8, "");
  config.name = str_cat("bitsandbytes, ", is_4bit ? 4 : 8, " bits");
  config.settings = BitsandbytesConfig();
  return ok_status();
}

Status read_float8(const Json& object, const ConfigReader& reader, QuantizationConfig& config) {
  Float8Config float8;
  ASSIGN_OR_RETURN(const std::string kind, reader.string("fmt", std::string("e4m3")));
  if (std::string_view(kind) != "e4m3") return reader.error("fmt", str_cat("expected e4m3, got ", kind.substr(0, 60)));
  if (const Json* block = object.find("weight_block_size"); block != nullptr && !block->is_null()) {
    const auto is_side = [](const Json& side) {
      return side.is_int() && side.as_int() >= 1 && side.as_int() <= kMaxGroupSize;
    };
    if (!block->is_array() || block->as_array().size() != 2 || !std::ranges::all_of(block->as_array(), is_side)) {
      return reader.error("weight_block_size", "expected two sizes, of outputs and of inputs");
    }
    float8 = {block->as_array()[0].as_int(), block->as_array()[1].as_int()};
  }
  add_format(config, Feature::kFloat8, "");
  config.name = "float8 e4m3";
  if (float8.block_inputs > 0) {
    config.name += str_cat(" in blocks of ", float8.block_outputs, " x ", float8.block_inputs);
  }
  config.settings = float8;
  return ok_status();
}

Status read_modelopt(const Json& object, const ConfigReader& reader, QuantizationConfig& config) {
  ASSIGN_OR_RETURN(const std::string algorithm, reader.string("quant_algo"));
  if (algorithm == "FP8" || algorithm == "FP8_PER_CHANNEL_PER_TOKEN") return read_float8(object, reader, config);
  add_format(config, Feature::kMicroscaling, str_cat("quant_algo: ", algorithm.substr(0, 60)));
  return ok_status();
}

// What quanto calls types of weights: in config.json "int8", in its map "qint8". "none" leaves them as floats.
Status add_quanto(std::string_view weights, bool has_activations, std::string_view field, QuantizationConfig& config) {
  config.settings = QuantoConfig();
  config.name = "quanto";
  if (weights == "none") return ok_status();
  const bool is_read = weights == "int8" || weights == "qint8" || weights == "float8" || weights == "qfloat8" ||
                       weights == "qfloat8_e4m3fn";
  const bool is_known = is_read || weights == "int4" || weights == "qint4" || weights == "int2" || weights == "qint2" ||
                        weights.starts_with("qfloat8_");
  if (!is_known) return invalid_argument(config.file, ": ", field, ": unknown type \"", weights.substr(0, 60), "\"");
  add_format(config, is_read && !has_activations ? Feature::kQuanto8 : Feature::kQuantoOthers, field);
  config.name = "quanto, 8 bits";
  return ok_status();
}

Status read_quanto(const ConfigReader& reader, QuantizationConfig& config) {
  ASSIGN_OR_RETURN(const std::string weights, reader.string("weights", std::string("int8")));
  return add_quanto(weights, reader.has("activations"), str_cat("weights: ", weights.substr(0, 60)), config);
}

// quanto_qmap.json: {MODULE: {"weights": "qint8", "activations": "none"}}. Modules of one kind are one format.
StatusOr<QuantizationConfig> parse_quanto_map(const Json& map, const std::string& file) {
  QuantizationConfig config;
  config.file = file;
  config.settings = QuantoConfig();
  config.name = "quanto";
  if (map.as_object().size() > kMaxModules) return invalid_argument(file, ": over ", kMaxModules, " modules");
  for (const auto& [module, value] : map.as_object()) {
    const std::string shown = module.substr(0, 200);
    if (!value.is_object()) return invalid_argument(file, ": ", shown, ": expected an object, got ", value.kind_name());
    const ConfigReader reader(value, str_cat(file, ": ", shown));
    ASSIGN_OR_RETURN(const std::string weights, reader.string("weights", std::string("none")));
    ASSIGN_OR_RETURN(const std::string activations, reader.string("activations", std::string("none")));
    QuantizationConfig one;
    one.file = file;
    RETURN_IF_ERROR(add_quanto(weights, activations != "none", str_cat(shown, ": weights: ", weights), one));
    for (QuantizationConfig::Format& format : one.formats) {
      const auto is_same = [&](const auto& known) { return known.feature == format.feature; };
      if (std::ranges::none_of(config.formats, is_same)) config.formats.push_back(std::move(format));
      config.name = one.name;
    }
  }
  return config;
}

Feature feature_of(CompressedForm form) {
  switch (form) {
    case CompressedForm::kPacked: return Feature::kCompressedPacked;
    case CompressedForm::kIntegers: return Feature::kCompressedIntegers;
    case CompressedForm::kFloat8: return Feature::kCompressedFloat8;
    case CompressedForm::kOther: break;
  }
  return Feature::kCompressedOthers;
}

Status read_compressed(const Json& object, const ConfigReader& reader, QuantizationConfig& config) {
  ASSIGN_OR_RETURN(CompressedConfig compressed, parse_compressed_config(object, config.file));
  config.name = "compressed-tensors";
  for (const CompressedGroup& group : compressed.groups) {
    const std::string field = str_cat("config_groups.", group.name);
    add_format(config, feature_of(group.form), str_cat(field, ": ", group.form_name));
    config.name += str_cat(", ", group.form_name, " ", group.bits, " bits");
    if (group.group > 0) config.name += str_cat(" in groups of ", group.group);
    if (group.rounds_inputs && config.rounds_inputs.empty())
      config.rounds_inputs = str_cat(field, ".input_activations");
    if (!group.unread_inputs.empty() && config.unread_inputs.empty()) {
      config.unread_inputs = str_cat(field, ".", group.unread_inputs);
    }
  }
  if (!compressed.other.empty()) add_format(config, Feature::kCompressedOthers, compressed.other);
  config.has_kv_scheme = reader.has("kv_cache_scheme");
  config.settings = std::move(compressed);
  return ok_status();
}

Status read_method(const NamedQuantMethod& named, const Json& object, QuantizationConfig& config) {
  const ConfigReader reader(object, config.file);
  switch (named.method) {
    case QuantMethod::kCompressedTensors: return read_compressed(object, reader, config);
    case QuantMethod::kBitsandbytes: return read_bitsandbytes(reader, config);
    case QuantMethod::kGptq: return read_gptq(object, reader, config);
    case QuantMethod::kAwq: return read_awq(reader, config);
    case QuantMethod::kFloat8: return read_float8(object, reader, config);
    case QuantMethod::kModelOpt: return read_modelopt(object, reader, config);
    case QuantMethod::kQuanto: return read_quanto(reader, config);
    case QuantMethod::kRefused: break;
  }
  add_format(config, named.feature, str_cat("quant_method: ", named.name));
  return ok_status();
}

StatusOr<QuantizationConfig> parse_as(const Json& object, const std::string& file,
                                      std::optional<std::string> usual_method) {
  QuantizationConfig config;
  config.file = file;
  const ConfigReader reader(object, file);
  ASSIGN_OR_RETURN(const std::string method, reader.string("quant_method", std::move(usual_method)));
  const NamedQuantMethod* named = find_quant_method(method);
  if (named == nullptr) {
    std::vector<std::string> read;
    for (const NamedQuantMethod& known : quant_methods()) {
      if (known.method != QuantMethod::kRefused) read.emplace_back(known.name);
    }
    return reader.error("quant_method",
                        str_cat("\"", method.substr(0, 60), "\" is unknown; this version reads ", join(read, ", ")));
  }
  RETURN_IF_ERROR(read_method(*named, object, config));
  return config;
}

// A file that stands beside config.json, or in its place.
struct OtherFile {
  const char* name;
  const char* method;  // where it does not say so itself; "": a map of quanto
};
constexpr OtherFile kOtherFiles[] = {
    {"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}, {"quanto_qmap.json", ""}};

StatusOr<QuantizationConfig> read_other_file(const std::string& path, const OtherFile& file) {
  ASSIGN_OR_RETURN(const Json object, read_json_object(path));
  if (file.method[0] == '\0') return parse_quanto_map(object, path);
  return parse_as(object, path, file.method);
}

// What differs in what two files say; "": nothing.
std::string difference(const QuantizationConfig& a, const QuantizationConfig& b) {
  if (a.settings.index() != b.settings.index()) return "quant_method";
  if (const auto* one = std::get_if<GptqConfig>(&a.settings)) {
    const auto& other = std::get<GptqConfig>(b.settings);
    if (one->bits != other.bits) return "bits";
    if (one->group != other.group) return "group_size";
    if (one->in_order != other.in_order) return "desc_act";
    if (one->zeros_less_1 != other.zeros_less_1) return "checkpoint_format";
  }
  if (const auto* one = std::get_if<AwqConfig>(&a.settings);
      one != nullptr && *one != std::get<AwqConfig>(b.settings)) {
    return "group_size";
  }
  const auto is_other = [](Feature x, const QuantizationConfig& config) {
    return std::ranges::none_of(config.formats, [&](const auto& format) { return format.feature == x; });
  };
  const auto is_missing_in = [&](const QuantizationConfig& config) {
    return [&](const auto& format) { return is_other(format.feature, config); };
  };
  const bool is_same =
      std::ranges::none_of(a.formats, is_missing_in(b)) && std::ranges::none_of(b.formats, is_missing_in(a));
  return is_same ? "" : "weights";
}

}  // namespace

StatusOr<QuantizationConfig> parse_quantization(const Json& object, const std::string& file) {
  return parse_as(object, file, std::nullopt);
}

StatusOr<std::optional<QuantizationConfig>> read_quantization(const ModelConfig& model) {
  std::optional<QuantizationConfig> result;
  const Json* own = model.raw.find("quantization_config");
  if (own != nullptr && !own->is_null() && !(own->is_bool() && !own->as_bool())) {
    const std::string place = model.path + "/config.json: quantization_config";
    if (!own->is_object())
      return with_param(invalid_argument(place, ": expected an object, got ", own->kind_name()), "quantization_config");
    ASSIGN_OR_RETURN(result, parse_quantization(*own, place));
  }
  for (const OtherFile& file : kOtherFiles) {
    const std::string path = str_cat(model.path, "/", file.name);
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    const bool is_refused = result.has_value() && std::holds_alternative<std::monostate>(result->settings);
    if (is_refused) break;
    ASSIGN_OR_RETURN(QuantizationConfig other, read_other_file(path, file));
    if (!result.has_value()) {
      result = std::move(other);
      continue;
    }
    if (const std::string field = difference(*result, other); !field.empty()) {
      return with_param(invalid_argument(path, ": ", field, ": contradicts ", result->file), field);
    }
  }
  return result;
}

}  // namespace transept
