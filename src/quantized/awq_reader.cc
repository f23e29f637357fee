#include "quantized/awq_reader.h"

#include "quantized/stored_codes.h"

namespace transept {
namespace {

constexpr int64_t kCodesPerWord = 8;

}  // namespace

bool AwqReader::has(const WeightMap& weights, std::string_view name) const {
  const std::string_view module = module_of(name);
  return !module.empty() && weights.has_tensor(str_cat(module, ".qweight"));
}

StatusOr<std::unique_ptr<MatrixSource>> AwqReader::open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                                        WeightUse use) const {
  const std::string_view module = module_of(name);
  const std::string codes_name = str_cat(module, ".qweight");
  MatrixParts parts(weights, use);
  if (n % kCodesPerWord != 0) return parts.error(codes_name, str_cat(n, " outputs are no multiple of 8"));
  ASSIGN_OR_RETURN(const int64_t count, count_groups(parts, codes_name, k, config_.group));
  ASSIGN_OR_RETURN(const StoredBytes codes, parts.bytes(codes_name, "I32", {k, n / kCodesPerWord}));
  ASSIGN_OR_RETURN(const std::vector<float> scales, parts.numbers(str_cat(module, ".scales"), {count, n}));
  ASSIGN_OR_RETURN(const std::vector<int32_t> zeros,
                   parts.words(str_cat(module, ".qzeros"), {count, n / kCodesPerWord}));
  CodeGroups groups;
  groups.scales.resize(scales.size());
  groups.zeros.resize(scales.size());
  for (int64_t group = 0; group < count; ++group) {
    for (int64_t output = 0; output < n; ++output) {
      const auto at = static_cast<size_t>(output * count + group);
      const auto word = static_cast<uint32_t>(zeros[static_cast<size_t>((group * n + output) / kCodesPerWord)]);
      groups.scales[at] = scales[static_cast<size_t>(group * n + output)];
      groups.zeros[at] = static_cast<int16_t>(static_cast<int32_t>((word >> AwqCodes::shift_of(output)) & 15u) - 8);
    }
  }
  const WeightFormat format{WeightLayout::kCodes, 4, static_cast<int32_t>(config_.group), true};
  return std::unique_ptr<MatrixSource>(std::make_unique<AwqCodes>(n, k, format, codes, std::move(groups)));
}

}  // namespace transept
