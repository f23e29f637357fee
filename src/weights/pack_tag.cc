#include "weights/pack_tag.h"

#include <charconv>
#include <initializer_list>
#include <vector>

namespace transept {
namespace {

constexpr std::string_view kLayout = "transept.layout";
constexpr std::string_view kStorage = "transept.storage";
constexpr std::string_view kMatrix = "transept.matrix.";  // NAME: "N K STORED STORAGE [INPUTS]"
constexpr std::string_view kAsStored = "stored";
constexpr std::string_view kWide = "wide", kOutliers = "outliers", kBFloat16 = "bfloat16";  // inputs

Status bad(std::string_view key, std::string_view value, std::string_view expected) {
  return invalid_argument(key.substr(0, 200), ": \"", value.substr(0, 200), "\": expected ", expected);
}

std::optional<int64_t> read_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<DType> read_dtype(std::string_view text, std::initializer_list<DType> allowed) {
  for (const DType dtype : allowed) {
    if (text == dtype_name(dtype)) return dtype;
  }
  return std::nullopt;
}

constexpr std::initializer_list<DType> kFloats = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};
constexpr std::initializer_list<DType> kStorages = {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kInt8};

std::optional<PackTag::Matrix> read_matrix(std::string_view text) {
  const std::vector<std::string_view> words = split(text, ' ');
  if (words.size() < 4 || words.size() > 5) return std::nullopt;
  const std::string_view inputs = words.size() == 5 ? words[4] : std::string_view();
  const bool outliers = inputs == kOutliers, wide = outliers || inputs == kWide, bfloat16 = inputs == kBFloat16;
  if (words.size() == 5 && !wide && !bfloat16) return std::nullopt;
  const std::optional<int64_t> n = read_integer(words[0]), k = read_integer(words[1]);
  const std::optional<DType> stored = read_dtype(words[2], kFloats), storage = read_dtype(words[3], kStorages);
  if (!n.has_value() || !k.has_value() || !stored.has_value() || !storage.has_value()) return std::nullopt;
  if ((wide && storage != DType::kInt8) || (bfloat16 && storage != DType::kBFloat16)) return std::nullopt;
  return PackTag::Matrix{*n, *k, *stored, *storage, wide, outliers, bfloat16};
}

}  // namespace

StatusOr<std::optional<PackTag>> parse_pack_tag(const SafetensorsMetadata& metadata) {
  const auto layout = metadata.find(kLayout);
  if (layout == metadata.end()) return std::optional<PackTag>();
  PackTag tag;
  const std::optional<int64_t> version = read_integer(layout->second);
  if (!version.has_value()) return bad(kLayout, layout->second, "a number");
  tag.layout = *version;
  for (const auto& [key, value] : metadata) {
    if (key == kStorage && value != kAsStored) {
      tag.storage = read_dtype(value, kStorages);
      if (!tag.storage.has_value()) return bad(key, value, "stored, float32, bfloat16, float16 or int8");
    } else if (key.starts_with(kMatrix)) {
      const std::optional<PackTag::Matrix> matrix = read_matrix(value);
      if (!matrix.has_value()) return bad(key, value, "N K STORED STORAGE [wide|outliers|bfloat16]");
      tag.matrices.emplace(key.substr(kMatrix.size()), *matrix);
    }
  }
  return std::optional(std::move(tag));
}

SafetensorsMetadata pack_tag_metadata(const PackTag& tag) {
  SafetensorsMetadata metadata;
  metadata.emplace(kLayout, str_cat(tag.layout));
  metadata.emplace(kStorage, tag.storage.has_value() ? dtype_name(*tag.storage) : kAsStored);
  for (const auto& [name, matrix] : tag.matrices) {
    metadata.emplace(str_cat(kMatrix, name),
                     str_cat(matrix.n, " ", matrix.k, " ", dtype_name(matrix.stored), " ", dtype_name(matrix.storage),
                             matrix.only_outliers     ? str_cat(" ", kOutliers)
                             : matrix.wide_inputs     ? str_cat(" ", kWide)
                             : matrix.bfloat16_inputs ? str_cat(" ", kBFloat16)
                                                      : std::string()));
  }
  return metadata;
}

}  // namespace transept
