#include "quantized/gptq_reader.h"

#include "base/checked_math.h"
#include "quantized/stored_codes.h"

namespace transept {
namespace {

constexpr int64_t kWordBits = 32;

// [columns, rows] -> [rows, columns].
template <typename T>
std::vector<T> transposed(const std::vector<T>& values, int64_t rows, int64_t columns) {
  std::vector<T> result(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      result[static_cast<size_t>(i * columns + j)] = values[static_cast<size_t>(j * rows + i)];
    }
  }
  return result;
}

// [n, groups].
StatusOr<std::vector<int16_t>> read_zeros(MatrixParts& parts, const std::string& name, const GptqConfig& config,
                                          int64_t n, int64_t groups) {
  const int64_t row_words = ceil_div(n * config.bits, kWordBits);
  ASSIGN_OR_RETURN(const StoredBytes stored, parts.bytes(name, "I32", {groups, row_words}));
  const int32_t offset = 1 << (config.bits - 1), most = (1 << config.bits) - 1;
  std::vector<int16_t> zeros(static_cast<size_t>(n * groups));
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t output = 0; output < n; ++output) {
      int32_t zero = read_bits(stored.bytes, group * row_words * kWordBits + output * config.bits, config.bits);
      if (config.zeros_less_1) zero = (zero + 1) & most;
      zeros[static_cast<size_t>(output * groups + group)] = static_cast<int16_t>(zero - offset);
    }
  }
  return zeros;
}

}  // namespace

bool GptqReader::has(const WeightMap& weights, std::string_view name) const {
  const std::string_view module = module_of(name);
  return !module.empty() && weights.has_tensor(str_cat(module, ".qweight"));
}

StatusOr<std::unique_ptr<MatrixSource>> GptqReader::open(WeightMap& weights, std::string_view name, int64_t n,
                                                         int64_t k, WeightUse use) const {
  const std::string_view module = module_of(name);
  const std::string codes_name = str_cat(module, ".qweight"), order_name = str_cat(module, ".g_idx");
  MatrixParts parts(weights, use);
  ASSIGN_OR_RETURN(const int64_t count, count_groups(parts, codes_name, k, config_.group));
  ASSIGN_OR_RETURN(const StoredBytes codes, parts.bytes(codes_name, "I32", {ceil_div(k * config_.bits, kWordBits), n}));
  CodeGroups groups;
  ASSIGN_OR_RETURN(const std::vector<float> scales, parts.numbers(str_cat(module, ".scales"), {count, n}));
  groups.scales = transposed(scales, n, count);
  ASSIGN_OR_RETURN(groups.zeros, read_zeros(parts, str_cat(module, ".qzeros"), config_, n, count));
  if (parts.has(order_name) || !config_.in_order) {
    ASSIGN_OR_RETURN(groups.input_groups, parts.input_groups(order_name, k, config_.group, count));
  }
  const WeightFormat format{WeightLayout::kCodes, config_.bits, static_cast<int32_t>(config_.group), true};
  return std::unique_ptr<MatrixSource>(std::make_unique<ColumnCodes>(n, k, format, codes, std::move(groups)));
}

}  // namespace transept
