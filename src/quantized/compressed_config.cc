#include "quantized/compressed_config.h"

#include <algorithm>

#include "core/model_config.h"

namespace transept {
namespace {

constexpr size_t kMaxGroups = 1000, kMaxPatterns = 4096;
constexpr size_t kMaxSteps = 16384;  // of all patterns: a matrix' name is compared with each
constexpr int64_t kMaxGroupSize = int64_t{1} << 24;

struct NamedForm {
  std::string_view name;
  CompressedForm integers, floats;  // by the type of the weights
};
constexpr NamedForm kForms[] = {
    {"pack-quantized", CompressedForm::kPacked, CompressedForm::kOther},
    {"int-quantized", CompressedForm::kIntegers, CompressedForm::kOther},
    {"float-quantized", CompressedForm::kOther, CompressedForm::kFloat8},
    {"naive-quantized", CompressedForm::kIntegers, CompressedForm::kFloat8},
};
constexpr std::string_view kMixed = "mixed-precision";

// The class of a module as far as its name tells it: tables of rows, and products.
std::string_view class_of(std::string_view module) {
  const std::string_view last = module.substr(module.rfind('.') + 1);
  for (const std::string_view table : {"shared", "embed_tokens", "embed_positions", "wte", "wpe", "word_embeddings"}) {
    if (last == table) return "Embedding";
  }
  return "Linear";
}

class Reader final {
 public:
  Reader(const Json& object, const std::string& file) : object_(object), config_(object, file) {}

  StatusOr<CompressedConfig> read() {
    CompressedConfig result;
    result.file = config_.file();
    ASSIGN_OR_RETURN(format_, config_.string("format", std::string()));
    ASSIGN_OR_RETURN(result.ignore, patterns(object_, config_, "ignore"));
    for (const char* key : {"sparsity_config", "transform_config"}) {
      if (is_used(object_.find(key))) result.other = key;
    }
    const Json* groups = object_.find("config_groups");
    if (groups == nullptr || groups->is_null()) return config_.error("config_groups", "is missing");
    if (!groups->is_object()) return config_.error("config_groups", "expected an object of groups");
    if (groups->as_object().size() > kMaxGroups) {
      return config_.error("config_groups", str_cat("over the ", kMaxGroups, " groups allowed"));
    }
    for (const auto& [name, group] : groups->as_object()) {
      const std::string place = str_cat(config_.file(), ": config_groups.", name.substr(0, 200));
      if (!group.is_object()) return invalid_argument(place, ": expected an object, got ", group.kind_name());
      ASSIGN_OR_RETURN(CompressedGroup one, read_group(group, place));
      one.name = name.substr(0, 200);
      result.groups.push_back(std::move(one));
    }
    return result;
  }

 private:
  // An object with a format of its own, or transforms; {} and "dense" are nothing.
  static bool is_used(const Json* value) {
    if (value == nullptr || value->is_null()) return false;
    if (!value->is_object()) return true;
    const Json* format = value->find("format");
    const bool is_dense = format != nullptr && format->is_string() && format->as_string() == "dense";
    return !value->as_object().empty() && !is_dense;
  }

  StatusOr<std::vector<NamePattern>> patterns(const Json& object, const ConfigReader& place, std::string_view key) {
    std::vector<NamePattern> list;
    const Json* value = object.find(key);
    if (value == nullptr || value->is_null()) return list;
    if (!value->is_array() || value->as_array().size() > kMaxPatterns) {
      return place.error(key, str_cat("expected a list of at most ", kMaxPatterns, " names"));
    }
    for (const Json& item : value->as_array()) {
      if (!item.is_string()) return place.error(key, str_cat("expected names, got ", item.kind_name()));
      StatusOr<NamePattern> pattern = NamePattern::parse(item.as_string());
      if (!pattern.ok()) return place.error(key, error_message(pattern.status()));
      num_steps_ += pattern->num_steps();
      if (num_steps_ > kMaxSteps) {
        return place.error(key, str_cat("all patterns together are over the ", kMaxSteps, " steps allowed"));
      }
      list.push_back(std::move(pattern).value());
    }
    return list;
  }

  StatusOr<CompressedGroup> read_group(const Json& object, const std::string& place) {
    const ConfigReader reader(object, place);
    CompressedGroup group;
    ASSIGN_OR_RETURN(group.targets, patterns(object, reader, "targets"));
    ASSIGN_OR_RETURN(group.form_name, reader.string("format", format_ == kMixed ? std::string() : format_));
    group.rounds_inputs = reader.has("input_activations") || reader.has("output_activations");
    RETURN_IF_ERROR(read_inputs(object, reader, group));
    const Json* weights = object.find("weights");
    if (weights == nullptr || weights->is_null()) {
      group.form = CompressedForm::kOther;
      return group;
    }
    if (!weights->is_object())
      return reader.error("weights", str_cat("expected an object, got ", weights->kind_name()));
    RETURN_IF_ERROR(read_weights(*weights, str_cat(place, ".weights"), group));
    return group;
  }

  static Status read_inputs(const Json& object, const ConfigReader& of_group, CompressedGroup& group) {
    if (of_group.has("output_activations")) group.unread_inputs = "output_activations: outputs of products";
    const Json* inputs = object.find("input_activations");
    if (inputs == nullptr || inputs->is_null()) return ok_status();
    if (!inputs->is_object()) {
      return of_group.error("input_activations", str_cat("expected an object, got ", inputs->kind_name()));
    }
    const ConfigReader reader(*inputs, str_cat(of_group.file(), ".input_activations"));
    ASSIGN_OR_RETURN(const int64_t bits, reader.integer("num_bits", 1, 64, 8));
    ASSIGN_OR_RETURN(const std::string type, reader.string("type", std::string("int")));
    ASSIGN_OR_RETURN(group.inputs.is_symmetric, reader.boolean("symmetric", true));
    ASSIGN_OR_RETURN(const int64_t size, reader.integer("group_size", -1, kMaxGroupSize, 0));
    ASSIGN_OR_RETURN(const std::string strategy, reader.string("strategy", std::string(size > 0 ? "group" : "tensor")));
    const auto refuse = [&](std::string_view field, std::string_view what) {
      if (group.unread_inputs.empty()) group.unread_inputs = str_cat("input_activations.", field, ": ", what);
      return ok_status();
    };
    if (type != "int" && type != "float") return reader.error("type", "expected int or float");
    const bool is_float = type == "float";
    if (is_float ? bits != 8 : bits < 2 || bits > 8) return refuse("num_bits", str_cat(bits, " of type ", type));
    if (is_float && !group.inputs.is_symmetric) return refuse("symmetric", "false of type float");
    if (reader.has("scale_dtype")) return refuse("scale_dtype", "a type of scales");
    const Json* dynamic = inputs->find("dynamic");
    const bool is_switch = dynamic == nullptr || dynamic->is_null() || dynamic->is_bool();
    if (!is_switch) return refuse("dynamic", dynamic->dump().substr(0, 60));
    const bool is_dynamic = dynamic != nullptr && dynamic->is_bool() && dynamic->as_bool();
    if (is_dynamic && strategy == "tensor") return refuse("strategy", "tensor, of a whole batch at once");
    const bool is_read = is_dynamic ? strategy == "token" || (strategy == "group" && size > 0) : strategy == "tensor";
    if (!is_read) return refuse("strategy", str_cat(strategy.substr(0, 60), is_dynamic ? ", dynamic" : ", static"));
    group.inputs.type = is_float ? InputQuantization::Type::kFloat8 : InputQuantization::Type::kInteger;
    group.inputs.bits = static_cast<int32_t>(bits);
    group.inputs.group = strategy == "group" ? static_cast<int32_t>(size) : 0;
    group.has_input_scale = !is_dynamic;
    return ok_status();
  }

  static Status read_weights(const Json& object, const std::string& place, CompressedGroup& group) {
    const ConfigReader reader(object, place);
    ASSIGN_OR_RETURN(const int64_t bits, reader.integer("num_bits", 1, 64, 8));
    group.bits = static_cast<int32_t>(bits);
    ASSIGN_OR_RETURN(const std::string type, reader.string("type", std::string("int")));
    if (type != "int" && type != "float") return reader.error("type", "expected int or float");
    ASSIGN_OR_RETURN(group.is_symmetric, reader.boolean("symmetric", true));
    group.form = form_of(group.form_name, type == "float");
    if (group.form == CompressedForm::kOther) return ok_status();
    const auto refuse = [&] { return reader.error("num_bits", str_cat(bits, " is not read as ", group.form_name)); };
    if (group.form == CompressedForm::kFloat8 && bits != 8) {
      group.form = CompressedForm::kOther;
      return ok_status();
    }
    if (group.form == CompressedForm::kPacked && (bits < 2 || bits > 8)) return refuse();
    if (group.form == CompressedForm::kIntegers && (bits < 2 || bits > 8)) return refuse();
    return read_strategy(object, reader, group);
  }

  static CompressedForm form_of(std::string_view name, bool is_float) {
    for (const NamedForm& form : kForms) {
      if (form.name == name) return is_float ? form.floats : form.integers;
    }
    return CompressedForm::kOther;
  }

  static Status read_strategy(const Json& object, const ConfigReader& reader, CompressedGroup& group) {
    ASSIGN_OR_RETURN(const int64_t size, reader.integer("group_size", -1, kMaxGroupSize, 0));
    ASSIGN_OR_RETURN(const std::string strategy, reader.string("strategy", std::string(size > 0   ? "group"
                                                                                       : size < 0 ? "channel"
                                                                                                  : "tensor")));
    if (strategy == "tensor" || strategy == "channel") return ok_status();
    if (strategy == "group") {
      if (size < 0) return ok_status();
      if (size == 0) return reader.error("group_size", "is missing, or 0");
      group.group = size;
      return ok_status();
    }
    if (strategy == "block" && group.form == CompressedForm::kFloat8) return read_block(object, reader, group);
    return reader.error("strategy", str_cat("\"", strategy, "\" is not read as ", group.form_name));
  }

  static Status read_block(const Json& object, const ConfigReader& reader, CompressedGroup& group) {
    const Json* sides = object.find("block_structure");
    const bool is_list = sides != nullptr && sides->is_array() && sides->as_array().size() == 2;
    const auto is_side = [](const Json& side) {
      return side.is_int() && side.as_int() >= 1 && side.as_int() <= kMaxGroupSize;
    };
    if (!is_list || !std::ranges::all_of(sides->as_array(), is_side)) {
      return reader.error("block_structure", "expected two sizes, of outputs and of inputs");
    }
    group.block_outputs = sides->as_array()[0].as_int();
    group.block_inputs = sides->as_array()[1].as_int();
    return ok_status();
  }

  const Json& object_;
  ConfigReader config_;
  std::string format_;
  size_t num_steps_ = 0;
};

}  // namespace

const CompressedGroup* CompressedConfig::group_of(std::string_view module) const {
  const auto find = [&](auto matches) -> const CompressedGroup* {
    for (const CompressedGroup& group : groups) {
      if (std::ranges::any_of(group.targets, matches)) return &group;
    }
    return nullptr;
  };
  const auto named = find([&](const NamePattern& target) { return target.is_name() && target.matches(module); });
  if (named != nullptr) return named;
  const auto matched = find([&](const NamePattern& target) { return !target.is_name() && target.matches(module); });
  if (matched != nullptr) return matched;
  const std::string_view own = class_of(module);
  return find([&](const NamePattern& target) { return target.text() == own; });
}

bool CompressedConfig::ignores(std::string_view module) const {
  return std::ranges::any_of(ignore, [&](const NamePattern& one) { return one.matches(module); });
}

StatusOr<CompressedConfig> parse_compressed_config(const Json& object, const std::string& file) {
  return Reader(object, file).read();
}

}  // namespace transept
