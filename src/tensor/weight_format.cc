#include "tensor/weight_format.h"

#include <charconv>
#include <vector>

#include "base/strings.h"

namespace transept {
namespace {

constexpr std::string_view kInteger = "int", kFloat = "float", kGroup = "g", kZeros = "zeros";
constexpr int32_t kMostBits = 8, kMostGroup = 1 << 30;

// A number from 1 to `most`, without sign or leading zeros.
std::optional<int32_t> read_number(std::string_view text, int32_t most) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && !text.starts_with('0');
  return is_whole && value >= 1 && value <= most ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string weight_format_name(const WeightFormat& format) {
  if (format.layout == WeightLayout::kBFloat) return str_cat("bfloat", format.bits);
  return str_cat(format.is_codes() ? kInteger : kFloat, format.bits,
                 format.group == 0 ? std::string() : str_cat("-", kGroup, format.group),
                 format.has_zero ? str_cat("-", kZeros) : std::string());
}

std::optional<WeightFormat> parse_weight_format(std::string_view name) {
  for (const WeightFormat& format : {kFloat32Format, kFloat16Format, kBFloat16Format, kFloat8Format, kFloat4Format}) {
    if (name == weight_format_name(format)) return format;
  }
  std::vector<std::string_view> words = split(name, '-');
  WeightFormat format = kFloat4Format;
  if (words[0] != weight_format_name(format)) {
    if (!words[0].starts_with(kInteger)) return std::nullopt;
    const std::optional<int32_t> bits = read_number(words[0].substr(kInteger.size()), kMostBits);
    if (!bits.has_value()) return std::nullopt;
    format = {.layout = WeightLayout::kCodes, .bits = *bits};
    if (words.size() > 1 && words.back() == kZeros) format.has_zero = true, words.pop_back();
  }
  if (words.size() == 1) return format;
  if (words.size() > 2 || !words[1].starts_with(kGroup)) return std::nullopt;
  const std::optional<int32_t> group = read_number(words[1].substr(kGroup.size()), kMostGroup);
  if (!group.has_value()) return std::nullopt;
  format.group = *group;
  return format;
}

}  // namespace transept
