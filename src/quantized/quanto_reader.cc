#include "quantized/quanto_reader.h"

#include "quantized/scaled_float8.h"
#include "quantized/stored_codes.h"

namespace transept {

bool QuantoReader::has(const WeightMap& weights, std::string_view name) const {
  return weights.has_tensor(str_cat(name, "._data"));
}

StatusOr<std::unique_ptr<MatrixSource>> QuantoReader::open(WeightMap& weights, std::string_view name, int64_t n,
                                                           int64_t k, WeightUse use) const {
  const std::string data = str_cat(name, "._data"), scale = str_cat(name, "._scale");
  MatrixParts parts(weights, use);
  if (parts.has(data, "F8_E4M3")) {
    ASSIGN_OR_RETURN(const StoredBytes codes, parts.bytes(data, "F8_E4M3", {n, k}));
    return open_scaled_float8(parts, codes, scale, n, k, {});
  }
  ASSIGN_OR_RETURN(const StoredBytes codes, parts.bytes(data, "I8", {n, k}));
  CodeGroups groups;
  ASSIGN_OR_RETURN(groups.scales, parts.scales(scale, n, 1));
  return std::unique_ptr<MatrixSource>(
      std::make_unique<RowCodes>(n, k, kInt8Format, codes, k, false, std::move(groups)));
}

}  // namespace transept
