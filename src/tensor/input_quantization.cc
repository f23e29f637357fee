#include "tensor/input_quantization.h"

#include <charconv>
#include <cmath>

#include "base/strings.h"

namespace transept {
namespace {

constexpr std::string_view kFloat8 = "float8", kInteger = "int", kToken = "-token", kTensor = "-tensor-", kGroup = "-g",
                           kZeros = "-zeros", kZero = "-zero";

// Reads a number at the beginning, and cuts it off.
template <typename Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

std::string input_quantization_name(const InputQuantization& inputs) {
  if (!inputs.rounds()) return "";
  std::string name =
      inputs.type == InputQuantization::Type::kFloat8 ? std::string(kFloat8) : str_cat(kInteger, inputs.bits);
  if (inputs.is_static()) {
    name += str_cat(kTensor, inputs.scale);
    if (!inputs.is_symmetric) name += str_cat(kZero, inputs.zero);
    return name;
  }
  name += inputs.group > 0 ? str_cat(kGroup, inputs.group) : std::string(kToken);
  return inputs.is_symmetric ? name : str_cat(name, kZeros);
}

std::optional<InputQuantization> parse_input_quantization(std::string_view name) {
  InputQuantization inputs;
  std::string_view rest = name;
  if (take(rest, kFloat8)) {
    inputs.type = InputQuantization::Type::kFloat8;
  } else if (take(rest, kInteger)) {
    inputs.type = InputQuantization::Type::kInteger;
    const std::optional<int32_t> bits = take_number<int32_t>(rest);
    if (!bits.has_value() || *bits < 2 || *bits > 8) return std::nullopt;
    inputs.bits = *bits;
  } else {
    return std::nullopt;
  }
  if (take(rest, kTensor)) {
    const std::optional<float> scale = take_number<float>(rest);
    if (!scale.has_value() || !(*scale > 0) || !std::isfinite(*scale)) return std::nullopt;
    inputs.scale = *scale;
    if (take(rest, kZero)) {
      const std::optional<int32_t> zero = take_number<int32_t>(rest);
      if (!zero.has_value() || *zero < -128 || *zero > 127) return std::nullopt;
      inputs.zero = *zero;
      inputs.is_symmetric = false;
    }
  } else if (take(rest, kGroup)) {
    const std::optional<int32_t> group = take_number<int32_t>(rest);
    if (!group.has_value() || *group < 1) return std::nullopt;
    inputs.group = *group;
  } else if (!take(rest, kToken)) {
    return std::nullopt;
  }
  if (!inputs.is_static() && take(rest, kZeros)) inputs.is_symmetric = false;
  const bool has_no_zeros = inputs.type == InputQuantization::Type::kFloat8 && !inputs.is_symmetric;
  return rest.empty() && !has_no_zeros ? std::optional(inputs) : std::nullopt;
}

}  // namespace transept
