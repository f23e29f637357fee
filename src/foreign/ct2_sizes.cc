#include "foreign/ct2_sizes.h"

#include <cmath>

#include "base/quoted.h"

namespace transept {
namespace {

constexpr double kMaxHeads = 4096;
constexpr int64_t kMaxLayers = 1000;

StatusOr<const Ct2File::Variable*> matrix(const Ct2File& file, const std::string& name) {
  const Ct2File::Variable* variable = file.find(name);
  if (variable == nullptr) return file.error(name, "is missing");
  if (variable->shape.size() != 2) return file.error(name, "is no matrix");
  return variable;
}

}  // namespace

StatusOr<Ct2Sizes> ct2_sizes(const Ct2File& file, std::string_view side) {
  Ct2Sizes sizes;
  const auto of_layer = [&](int64_t i, std::string_view rest) { return str_cat(side, "/layer_", i, "/", rest); };
  const std::string_view fused = "self_attention/linear_0/weight";
  while (sizes.layers < kMaxLayers && file.find(of_layer(sizes.layers, fused)) != nullptr) ++sizes.layers;
  ASSIGN_OR_RETURN(const Ct2File::Variable* attention, matrix(file, of_layer(0, fused)));
  ASSIGN_OR_RETURN(const Ct2File::Variable* ffn, matrix(file, of_layer(0, "ffn/linear_0/weight")));
  sizes.width = attention->shape[1];
  sizes.attention_width = attention->shape[0] / 3;
  sizes.ffn_width = ffn->shape[0];
  const std::string heads = str_cat(side, "/num_heads");
  const std::optional<double> num_heads = file.scalar(file.find(heads) == nullptr ? "num_heads" : heads);
  if (!num_heads.has_value()) return file.error(heads, "is missing");
  if (!(*num_heads >= 1 && *num_heads <= kMaxHeads)) return file.error(heads, str_cat(*num_heads, " heads"));
  sizes.heads = static_cast<int64_t>(*num_heads);
  if (sizes.attention_width % sizes.heads != 0) {
    return file.error(heads, str_cat(sizes.heads, " heads do not divide a width of ", sizes.attention_width));
  }
  const Ct2File::Variable* positions = file.find(str_cat(side, "/position_encodings/encodings"));
  if (positions != nullptr) {
    if (positions->shape.size() != 2) return file.error(positions->name, "is no matrix");
    sizes.positions = positions->shape[0];
  }
  return sizes;
}

StatusOr<std::string> ct2_activation(const Ct2File& file) {
  constexpr const char* kNames[] = {"relu", "gelu_new", "silu", "gelu", "quick_gelu"};  // by number
  const double encoder = file.scalar("encoder/activation").value_or(0);
  const double decoder = file.scalar("decoder/activation").value_or(0);
  if (encoder != decoder) return file.error("decoder/activation", "differs from that of the encoder");
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (encoder == static_cast<double>(i)) return std::string(kNames[i]);
  }
  return file.error("encoder/activation", str_cat(encoder, " is not supported; 0 to 4 are"));
}

bool ct2_flag(const Ct2File& file, std::string_view name, bool fallback) {
  return file.scalar(name).value_or(fallback ? 1 : 0) != 0;
}

StatusOr<bool> ct2_scales_embeddings(const Ct2File& file, std::string_view side, int64_t width, bool fallback) {
  const std::string name = str_cat(side, "/scale_embeddings");
  const Ct2File::Variable* variable = file.find(name);
  if (variable == nullptr || variable->dtype != "F32") return ct2_flag(file, name, fallback);
  const double value = file.scalar(name).value_or(1), root = std::sqrt(static_cast<double>(width));
  if (value != 1 && !ct2_is_near(value, root)) {
    return file.error(name, str_cat(value, " is not supported; 1 and ", root, " are"));
  }
  return value != 1;
}

bool ct2_is_near(double one, double other) { return std::abs(one - other) <= 1e-4 * std::abs(other); }

bool ct2_same(const Ct2File& file, std::string_view one, std::string_view other) {
  return file.find(one) != nullptr && file.find(one) == file.find(other);
}

}  // namespace transept
