#include "weights/pack_tag.h"

#include <charconv>
#include <vector>

namespace transept {
namespace {

constexpr std::string_view kLayout = "transept.layout";
constexpr std::string_view kStorage = "transept.storage";
constexpr std::string_view kRanks = "transept.ranks";     // "R of N"
constexpr std::string_view kSource = "transept.source";   // PackTag::source
constexpr std::string_view kMatrix = "transept.matrix.";  // NAME: "N K STORED STORAGE [INPUTS]"
constexpr std::string_view kInputs = "transept.inputs.";  // NAME: input_quantization_name()
constexpr std::string_view kAsStored = "stored";
constexpr std::string_view kWide = "wide", kOutliers = "outliers", kBFloat16 = "bfloat16",
                           kGroups = "groups";  // inputs

Status bad(std::string_view key, std::string_view value, std::string_view expected) {
  return invalid_argument(key.substr(0, 200), ": \"", value.substr(0, 200), "\": expected ", expected);
}

std::optional<int64_t> read_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && value >= 0 ? std::optional(value) : std::nullopt;
}

// False: not of the form.
bool read_ranks(std::string_view text, PackTag& tag) {
  const std::vector<std::string_view> words = split(text, ' ');
  if (words.size() != 3 || words[1] != "of") return false;
  const std::optional<int64_t> rank = read_integer(words[0]), count = read_integer(words[2]);
  if (!rank.has_value() || !count.has_value() || *count < 2 || *count > kMaxPackedRanks || *rank >= *count)
    return false;
  tag.rank = static_cast<int32_t>(*rank);
  tag.num_ranks = static_cast<int32_t>(*count);
  return true;
}

bool is_digest(std::string_view text) {
  constexpr size_t kDigits = 64;
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A format that matrices are packed in.
std::optional<WeightFormat> read_storage(std::string_view text) {
  for (const WeightFormat& format : {kFloat32Format, kBFloat16Format, kFloat16Format, kInt8Format}) {
    if (text == weight_format_name(format)) return format;
  }
  const std::optional<WeightFormat> format = parse_weight_format(text);
  return format.has_value() && format->is_nibbles() ? format : std::nullopt;
}

// Unset: no such word.
std::optional<InputRounding> read_inputs(std::string_view text) {
  if (text == kWide) return InputRounding::kWide;
  if (text == kOutliers) return InputRounding::kOutliers;
  if (text == kBFloat16) return InputRounding::kBFloat16;
  if (text == kGroups) return InputRounding::kGroups;
  return std::nullopt;
}

std::string_view inputs_name(InputRounding inputs) {
  switch (inputs) {
    case InputRounding::kUsual: break;
    case InputRounding::kWide: return kWide;
    case InputRounding::kOutliers: return kOutliers;
    case InputRounding::kBFloat16: return kBFloat16;
    case InputRounding::kGroups: return kGroups;
  }
  return "";
}

std::optional<PackTag::Matrix> read_matrix(std::string_view text) {
  const std::vector<std::string_view> words = split(text, ' ');
  if (words.size() < 4 || words.size() > 5) return std::nullopt;
  const std::optional<int64_t> n = read_integer(words[0]), k = read_integer(words[1]);
  const std::optional<WeightFormat> stored = parse_weight_format(words[2]), storage = read_storage(words[3]);
  const auto inputs = words.size() == 5 ? read_inputs(words[4]) : std::optional(InputRounding::kUsual);
  if (!n.has_value() || !k.has_value() || !stored.has_value() || !storage.has_value() || !inputs.has_value()) {
    return std::nullopt;
  }
  const PackedFormat format{*storage, *inputs};
  return format.is_consistent() ? std::optional(PackTag::Matrix{*n, *k, *stored, format}) : std::nullopt;
}

}  // namespace

std::optional<std::string_view> packed_matrix_of(std::string_view tensor) {
  for (const std::string_view ending : {kPackedPanels, kPackedScales, kPackedSums}) {
    if (tensor.ends_with(ending)) return tensor.substr(0, tensor.size() - ending.size());
  }
  return std::nullopt;
}

StatusOr<std::optional<PackTag>> parse_pack_tag(const SafetensorsMetadata& metadata) {
  const auto layout = metadata.find(kLayout);
  if (layout == metadata.end()) return std::optional<PackTag>();
  PackTag tag;
  const std::optional<int64_t> version = read_integer(layout->second);
  if (!version.has_value()) return bad(kLayout, layout->second, "a number");
  tag.layout = *version;
  for (const auto& [key, value] : metadata) {
    if (key == kStorage && value != kAsStored) {
      tag.storage = read_storage(value);
      if (!tag.storage.has_value())
        return bad(key, value, "stored, float32, bfloat16, float16, int8 or int4 in groups");
    } else if (key == kRanks) {
      if (!read_ranks(value, tag)) return bad(key, value, "RANK of NUMBER");
    } else if (key == kSource) {
      if (!is_digest(value)) return bad(key, value, "64 hexadecimal digits");
      tag.source = value;
    } else if (key.starts_with(kMatrix)) {
      const std::optional<PackTag::Matrix> matrix = read_matrix(value);
      if (!matrix.has_value()) return bad(key, value, "N K STORED STORAGE [wide|outliers|bfloat16|groups]");
      tag.matrices.emplace(key.substr(kMatrix.size()), *matrix);
    } else if (key.starts_with(kInputs)) {
      const std::optional<InputQuantization> inputs = parse_input_quantization(value);
      if (!inputs.has_value()) return bad(key, value, "the name of a rounding of inputs");
      tag.inputs.emplace(key.substr(kInputs.size()), *inputs);
    }
  }
  return std::optional(std::move(tag));
}

SafetensorsMetadata pack_tag_metadata(const PackTag& tag) {
  SafetensorsMetadata metadata;
  metadata.emplace(kLayout, str_cat(tag.layout));
  metadata.emplace(kStorage, tag.storage.has_value() ? weight_format_name(*tag.storage) : std::string(kAsStored));
  if (tag.num_ranks > 1) metadata.emplace(kRanks, str_cat(tag.rank, " of ", tag.num_ranks));
  if (!tag.source.empty()) metadata.emplace(kSource, tag.source);
  for (const auto& [name, matrix] : tag.matrices) {
    const std::string_view inputs = inputs_name(matrix.format.inputs);
    metadata.emplace(str_cat(kMatrix, name),
                     str_cat(matrix.n, " ", matrix.k, " ", weight_format_name(matrix.stored), " ",
                             weight_format_name(matrix.format.weights), inputs.empty() ? "" : " ", inputs));
  }
  for (const auto& [name, inputs] : tag.inputs) {
    metadata.emplace(str_cat(kInputs, name), input_quantization_name(inputs));
  }
  return metadata;
}

}  // namespace transept
