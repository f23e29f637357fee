#include "foreign/ct2_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/checked_math.h"
#include "foreign/ct2_matrix.h"
#include "tensor/dtype.h"
#include "weights/weight_view.h"

namespace transept {
namespace {

constexpr std::string_view kWeight = ".weight";

bool is_codes(std::string_view dtype) { return dtype == "I8" || dtype == "I16"; }

// Scalars that say nothing more about the models that are read, or what must be so: 0.
struct KnownScalar {
  std::string_view name;  // the last part
  bool is_free;
};
constexpr KnownScalar kScalars[] = {
    {"activation", true},
    {"alibi", false},
    {"alignment_heads", true},
    {"alibi_use_positive_positions", true},
    {"alignment_layer", true},
    {"embeddings_merge", true},
    {"num_heads", true},
    {"multi_query_attention", false},
    {"pre_norm", true},
    {"start_from_zero_embedding", true},
    {"scale_alibi", true},
    {"scale_embeddings", true},
    {"scale_outputs", true},
    {"relative_attention_max_distance", true},
    {"with_source_bos", false},
    {"with_source_eos", true},
    {"with_target_bos", true},
    {"layer_norm_use_residual", false},
    {"multiply_by_sqrt_depth", true},
};

}  // namespace

Ct2LayerNames Ct2LayerNames::bart(const std::string& prefix, bool is_decoder) {
  const std::string self = prefix + ".self_attn", cross = prefix + ".encoder_attn";
  Ct2LayerNames names{.q = self + ".q_proj", .k = self + ".k_proj", .v = self + ".v_proj", .out = self + ".out_proj"};
  names.self_norm = self + "_layer_norm";
  if (is_decoder) {
    names.cross_q = cross + ".q_proj", names.cross_k = cross + ".k_proj", names.cross_v = cross + ".v_proj";
    names.cross_out = cross + ".out_proj", names.cross_norm = cross + "_layer_norm";
  }
  names.up = prefix + ".fc1", names.down = prefix + ".fc2", names.ffn_norm = prefix + ".final_layer_norm";
  return names;
}

StatusOr<const Ct2File::Variable*> Ct2Tensors::take(std::string_view name, size_t rank) {
  const Ct2File::Variable* variable = file_.find(name);
  if (variable == nullptr) return file_.error(name, "is missing");
  if (variable->shape.size() != rank) {
    return file_.error(name, str_cat("has ", variable->shape.size(), " dimensions, expected ", rank));
  }
  taken_.insert(variable->name);
  return variable;
}

Status Ct2Tensors::floats_only(const Ct2File::Variable& variable) const {
  if (variable.dtype == "F32" || variable.dtype == "F16" || variable.dtype == "BF16") return ok_status();
  return file_.error(variable.name, str_cat("dtype ", variable.dtype, " is no floating-point type"));
}

void Ct2Tensors::add(const Ct2File::Variable& variable, const std::string& name, int64_t begin, int64_t count) {
  const size_t row_bytes = variable.data.size() / static_cast<size_t>(variable.shape[0]);
  std::vector<int64_t> shape = variable.shape;
  shape[0] = count;
  const auto data =
      variable.data.subspan(static_cast<size_t>(begin) * row_bytes, static_cast<size_t>(count) * row_bytes);
  found_.tensors.push_back({{name, std::string(variable.dtype), std::move(shape), data}, {}});
}

Status Ct2Tensors::scales(const Ct2File::Variable& matrix, const std::vector<std::string>& modules) {
  const std::string name = str_cat(matrix.name, "_scale");
  const Ct2File::Variable* variable = file_.find(name);
  if (variable == nullptr) return file_.error(name, "is missing");
  taken_.insert(variable->name);
  const int64_t rows = matrix.shape[0], part = rows / std::ssize(modules);
  const bool is_one = variable->data.size() == sizeof(float);
  const bool is_each = variable->shape.size() == 1 && variable->shape[0] == rows;
  if (variable->dtype != "F32" || !(is_one || is_each)) {
    return file_.error(name, str_cat("expected one F32, or one for each of ", rows, " rows"));
  }
  for (size_t i = 0; i < modules.size(); ++i) {
    const std::string scale = str_cat(modules[i], kWeight, "_scale");
    if (is_each) {
      add(*variable, scale, static_cast<int64_t>(i) * part, part);
    } else {
      found_.tensors.push_back({{scale, "F32", {1}, variable->data}, {}});
    }
  }
  return ok_status();
}

Status Ct2Tensors::matrix(std::string_view name, const std::vector<std::string>& modules) {
  const Ct2File::Variable* variable = file_.find(name);
  const bool is_kernel = variable != nullptr && variable->shape.size() == 3;
  ASSIGN_OR_RETURN(variable, take(name, is_kernel ? 3 : 2));
  const int64_t part = variable->shape[0] / std::ssize(modules);
  if (part * std::ssize(modules) != variable->shape[0]) {
    return file_.error(name, str_cat(variable->shape[0], " rows are no ", modules.size(), " equal parts"));
  }
  for (size_t i = 0; i < modules.size(); ++i) {
    add(*variable, str_cat(modules[i], kWeight), static_cast<int64_t>(i) * part, part);
  }
  if (!is_codes(variable->dtype)) return floats_only(*variable);
  types_.insert(variable->dtype);
  return scales(*variable, modules);
}

Status Ct2Tensors::linear(std::string_view scope, const std::vector<std::string>& modules, bool keys_have_bias) {
  const std::string weight = str_cat(scope, "/weight"), bias = str_cat(scope, "/bias");
  RETURN_IF_ERROR(matrix(weight, modules));
  if (!has_biases_ || file_.find(bias) == nullptr) return ok_status();
  ASSIGN_OR_RETURN(const Ct2File::Variable* variable, take(bias, 1));
  RETURN_IF_ERROR(floats_only(*variable));
  const int64_t rows = file_.find(weight)->shape[0], part = rows / std::ssize(modules);
  if (variable->shape[0] != rows)
    return file_.error(bias, str_cat("has ", variable->shape[0], " of ", rows, " numbers"));
  for (size_t i = 0; i < modules.size(); ++i) {
    if (!keys_have_bias && modules[i].ends_with("k_proj")) continue;
    add(*variable, str_cat(modules[i], ".bias"), static_cast<int64_t>(i) * part, part);
  }
  return ok_status();
}

Status Ct2Tensors::norm(std::string_view scope, const std::string& module) {
  RETURN_IF_ERROR(tensor(str_cat(scope, "/gamma"), str_cat(module, kWeight)));
  const std::string beta = str_cat(scope, "/beta");
  if (!has_biases_ || file_.find(beta) == nullptr) return ok_status();
  return tensor(beta, str_cat(module, ".bias"));
}

Status Ct2Tensors::tensor(std::string_view variable, const std::string& name) {
  const Ct2File::Variable* found = file_.find(variable);
  const bool is_list = found != nullptr && found->shape.size() == 1;
  ASSIGN_OR_RETURN(found, take(variable, is_list ? 1 : 2));
  RETURN_IF_ERROR(floats_only(*found));
  add(*found, name, 0, found->shape[0]);
  return ok_status();
}

Status Ct2Tensors::table(std::string_view scope, const std::string& name, bool is_longer) {
  if (is_longer) longer_.insert(name);
  return matrix(str_cat(scope, "/weight"), {name.substr(0, name.size() - kWeight.size())});
}

Status Ct2Tensors::shifted_table(std::string_view variable, const std::string& name, int64_t num_zeros) {
  ASSIGN_OR_RETURN(const Ct2File::Variable* found, take(variable, 2));
  RETURN_IF_ERROR(floats_only(*found));
  const std::span<std::byte> bytes = found_.make(found->dtype, name, {found->shape[0] + num_zeros, found->shape[1]});
  std::ranges::copy(found->data, bytes.last(found->data.size()).begin());
  return ok_status();
}

Status Ct2Tensors::output_bias(std::string_view variable, const std::string& name, bool is_longer) {
  const Ct2File::Variable* found = file_.find(variable);
  if (found != nullptr) {
    ASSIGN_OR_RETURN(found, take(variable, 1));
    RETURN_IF_ERROR(floats_only(*found));
  }
  if (found == nullptr && !is_longer) return ok_status();
  const Ct2File::Variable* weight = file_.find("decoder/projection/weight");
  const int64_t rows = weight == nullptr ? 0 : weight->shape[0];
  if (found != nullptr && found->shape[0] != rows) {
    return file_.error(variable, str_cat("has ", found->shape[0], " of ", rows, " numbers"));
  }
  std::vector<float> values(static_cast<size_t>(rows));
  if (found != nullptr) {
    const DType dtype = found->dtype == "F32"   ? DType::kFloat32
                        : found->dtype == "F16" ? DType::kFloat16
                                                : DType::kBFloat16;
    widen_bytes(dtype, found->data.data(), values);
  }
  if (is_longer) values.push_back(-INFINITY);
  const std::span<std::byte> bytes = found_.make("F32", name, {1, std::ssize(values)});
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return ok_status();
}

Status Ct2Tensors::bart_layers(const std::string& side, const Ct2Sizes& sizes, bool keys_have_bias) {
  const int64_t head_dim = sizes.width / sizes.heads;
  const double queries_scale = 1 / std::sqrt(static_cast<double>(head_dim));
  for (int64_t i = 0; i < sizes.layers; ++i) {
    const Ct2LayerNames names = Ct2LayerNames::bart(str_cat("model.", side, ".layers.", i), side == "decoder");
    RETURN_IF_ERROR(layer(str_cat(side, "/layer_", i), names, queries_scale, keys_have_bias));
  }
  return ok_status();
}

Status Ct2Tensors::layer(std::string_view scope, const Ct2LayerNames& names, double queries_scale,
                         bool keys_have_bias) {
  const auto part = [scope](std::string_view rest) { return str_cat(scope, "/", rest); };
  for (const char* name : {"self_attention/queries_scale", "attention/queries_scale"}) {
    const std::optional<double> scale = file_.scalar(part(name));
    if (!scale.has_value()) continue;
    ignore(part(name));
    if (std::abs(*scale - queries_scale) < 1e-6) continue;
    return file_.error(part(name), str_cat(*scale, " is not supported: a ", model_, " has ", queries_scale));
  }
  RETURN_IF_ERROR(linear(part("self_attention/linear_0"), {names.q, names.k, names.v}, keys_have_bias));
  RETURN_IF_ERROR(linear(part("self_attention/linear_1"), {names.out}));
  RETURN_IF_ERROR(norm(part("self_attention/layer_norm"), names.self_norm));
  if (!names.cross_q.empty()) {
    RETURN_IF_ERROR(linear(part("attention/linear_0"), {names.cross_q}));
    RETURN_IF_ERROR(linear(part("attention/linear_1"), {names.cross_k, names.cross_v}, keys_have_bias));
    RETURN_IF_ERROR(linear(part("attention/linear_2"), {names.cross_out}));
    RETURN_IF_ERROR(norm(part("attention/layer_norm"), names.cross_norm));
  }
  RETURN_IF_ERROR(linear(part("ffn/linear_0"), {names.gate.empty() ? names.up : names.gate}));
  if (!names.gate.empty()) RETURN_IF_ERROR(linear(part("ffn/linear_0_noact"), {names.up}));
  RETURN_IF_ERROR(linear(part("ffn/linear_1"), {names.down}));
  return norm(part("ffn/layer_norm"), names.ffn_norm);
}

void Ct2Tensors::ignore(std::string_view variable) {
  if (const Ct2File::Variable* found = file_.find(variable); found != nullptr) taken_.insert(found->name);
}

StatusOr<FoundTensors> Ct2Tensors::finish(std::unique_ptr<MmapFile> file) && {
  for (const auto& [name, variable] : file_.variables()) {
    if (taken_.contains(name)) continue;
    if (!variable.is_scalar()) return file_.error(name, str_cat("no ", model_, " has it"));
    const std::string_view last = name.substr(name.rfind('/') + 1);
    const auto known = std::ranges::find(kScalars, last, &KnownScalar::name);
    if (known == std::end(kScalars)) return file_.error(name, str_cat("no ", model_, " has it"));
    const double value = file_.scalar(name).value_or(0);
    if (!known->is_free && value != 0) return file_.error(name, str_cat(value, " is not supported; 0 is"));
  }
  for (const std::string_view type : types_) {
    const std::string_view codes = type == "I8" ? "int8" : "int16";
    found_.quantization = str_cat(found_.quantization.empty() ? "ctranslate2 " : found_.quantization + " and ", codes);
  }
  if (!types_.empty() || !longer_.empty()) found_.matrices = std::make_unique<Ct2MatrixReader>(std::move(longer_));
  found_.file = std::move(file);
  return std::move(found_);
}

}  // namespace transept
