#include "quantized/matrix_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/mmap_file.h"
#include "weights/matrix_source.h"
#include "weights/weight_view.h"

namespace transept {
namespace {

std::optional<DType> number_type(std::string_view dtype) {
  if (dtype == "F32") return DType::kFloat32;
  if (dtype == "F16") return DType::kFloat16;
  if (dtype == "BF16") return DType::kBFloat16;
  return std::nullopt;
}

}  // namespace

void StoredBytes::release(size_t begin, size_t count) const {
  if (file == nullptr) return;
  begin = std::min(begin, bytes.size());
  file->release_pages(bytes.subspan(begin, std::min(count, bytes.size() - begin)));
}

bool MatrixParts::has(std::string_view name, std::string_view dtype) const {
  const auto form = weights_.form_of(name);
  return form.has_value() && form->dtype == dtype;
}

StatusOr<WeightMap::Form> MatrixParts::form(std::string_view name) const {
  const auto form = weights_.form_of(name);
  if (!form.has_value()) return with_param(not_found(weights_.source(), ": tensor \"", name, "\" is missing"), name);
  return *form;
}

StatusOr<StoredBytes> MatrixParts::bytes(std::string_view name, std::string_view dtype,
                                         const std::vector<int64_t>& shape) {
  ASSIGN_OR_RETURN(const std::span<const std::byte> found, weights_.get_bytes(name, dtype, shape, use_));
  // Bytes that were gathered lie in memory of the map.
  const auto form = weights_.form_of(name);
  const std::span<const std::byte> whole = form->file->bytes();
  const bool is_mapped = found.data() >= whole.data() && found.data() < whole.data() + whole.size();
  return StoredBytes{found, is_mapped ? form->file : nullptr};
}

StatusOr<StoredBytes> MatrixParts::any_bytes(std::string_view name, int64_t num_bytes) {
  ASSIGN_OR_RETURN(const WeightMap::Form found, form(name));
  if (static_cast<int64_t>(found.data.size()) != num_bytes) {
    return error(name, str_cat("has ", found.data.size(), " bytes, expected ", num_bytes));
  }
  return bytes(name, found.dtype, {found.shape.begin(), found.shape.end()});
}

StatusOr<std::vector<float>> MatrixParts::numbers(std::string_view name, const std::vector<int64_t>& shape) {
  ASSIGN_OR_RETURN(const WeightMap::Form found, form(name));
  const std::optional<DType> type = number_type(found.dtype);
  if (!type.has_value()) return error(name, str_cat("dtype ", found.dtype, ", expected F32, F16 or BF16"));
  ASSIGN_OR_RETURN(const StoredBytes stored, bytes(name, found.dtype, shape));
  std::vector<float> values(stored.bytes.size() / dtype_bytes(*type));
  widen_bytes(*type, stored.bytes.data(), values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return error(name, str_cat("element ", i, " is not finite"));
  }
  return values;
}

StatusOr<std::vector<float>> MatrixParts::scales(std::string_view name, int64_t outputs, int64_t columns) {
  ASSIGN_OR_RETURN(const WeightMap::Form found, form(name));
  std::vector<int64_t> shape = {outputs, columns};
  const bool is_one = found.shape.size() <= 2 && std::ranges::all_of(found.shape, [](int64_t dim) { return dim == 1; });
  const bool is_list = columns == 1 && found.shape.size() == 1 && found.shape[0] == outputs;
  if (is_one || is_list) shape.assign(found.shape.begin(), found.shape.end());
  ASSIGN_OR_RETURN(std::vector<float> values, numbers(name, shape));
  if (is_one) values.assign(static_cast<size_t>(outputs * columns), values.front());
  return values;
}

StatusOr<std::vector<int32_t>> MatrixParts::words(std::string_view name, const std::vector<int64_t>& shape) {
  ASSIGN_OR_RETURN(const StoredBytes stored, bytes(name, "I32", shape));
  std::vector<int32_t> values(stored.bytes.size() / sizeof(int32_t));
  if (!values.empty()) std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
  return values;
}

StatusOr<std::vector<int32_t>> MatrixParts::input_groups(std::string_view name, int64_t k, int64_t group,
                                                         int64_t num_groups) {
  ASSIGN_OR_RETURN(std::vector<int32_t> groups, words(name, {k}));
  bool is_in_order = true;
  for (int64_t j = 0; j < k; ++j) {
    const int32_t own = groups[static_cast<size_t>(j)];
    if (own < 0 || own >= num_groups) {
      return error(name, str_cat("element ", j, " is group ", own, ", expected 0 to ", num_groups - 1));
    }
    is_in_order &= own == (group == 0 ? 0 : j / group);
  }
  if (is_in_order) groups.clear();
  return groups;
}

std::string_view module_of(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : std::string_view();
}

StatusOr<int64_t> count_groups(const MatrixParts& parts, std::string_view name, int64_t k, int64_t group) {
  if (group == 0) return 1;
  if (k % group != 0) return parts.error(name, str_cat("groups of ", group, " do not divide its ", k, " inputs"));
  if (k / group > CodedMatrix::kMaxGroups) {
    return parts.error(name, str_cat(k / group, " groups are over the ", CodedMatrix::kMaxGroups, " allowed"));
  }
  return k / group;
}

}  // namespace transept
