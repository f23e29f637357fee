#include "models/activation_field.h"

namespace transept {

StatusOr<Activation> activation_by_name(const ConfigReader& reader, std::string_view key, std::string_view name) {
  if (name == "gelu") return Activation::kGelu;
  if (name == "relu") return Activation::kRelu;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "quick_gelu") return Activation::kQuickGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  return reader.error(
      key, str_cat("\"", name,
                   "\" is not supported; one of gelu, relu, silu, swish, gelu_new, gelu_pytorch_tanh, quick_gelu"));
}

StatusOr<Activation> read_activation(const ConfigReader& reader, std::string_view key, std::string_view fallback) {
  ASSIGN_OR_RETURN(const std::string name, reader.string(key, std::string(fallback)));
  return activation_by_name(reader, key, name);
}

}  // namespace transept
