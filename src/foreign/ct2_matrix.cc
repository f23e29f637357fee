#include "foreign/ct2_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mmap_file.h"
#include "weights/weight_map.h"
#include "weights/weight_view.h"

namespace transept {
namespace {

std::optional<DType> float_type(std::string_view dtype) {
  if (dtype == "F32") return DType::kFloat32;
  if (dtype == "F16") return DType::kFloat16;
  if (dtype == "BF16") return DType::kBFloat16;
  return std::nullopt;
}

size_t element_bytes(std::string_view dtype) { return dtype == "I8" ? 1 : dtype == "F32" ? 4 : 2; }

struct Stored {
  std::string_view dtype;  // of the WeightMap
  std::span<const std::byte> bytes;
  int64_t rows = 0;  // of which the bytes are
  const MmapFile* file = nullptr;
  std::vector<float> scales;  // of codes: [rows], or one
};

class Ct2Matrix final : public MatrixSource {
 public:
  Ct2Matrix(int64_t n, int64_t k, Stored stored)
      : MatrixSource(n, k,
                     float_type(stored.dtype).has_value() ? weights_of(*float_type(stored.dtype)) : kFloat32Format),
        stored_(std::move(stored)),
        width_(element_bytes(stored_.dtype)) {}

  void read_rows(int64_t begin, int64_t count, IndexRange columns, std::span<float> out) const override {
    CHECK(begin >= 0 && count >= 0 && count <= n() - begin && columns.begin >= 0 && columns.end <= k());
    const auto num_columns = static_cast<size_t>(columns.size());
    CHECK(out.size() == static_cast<size_t>(count) * num_columns);
    for (int64_t row = begin; row < begin + count; ++row) {
      const std::span<float> to = out.subspan(static_cast<size_t>(row - begin) * num_columns, num_columns);
      if (row >= stored_.rows) {
        std::ranges::fill(to, 0.0f);
        continue;
      }
      const std::byte* at = stored_.bytes.data() + static_cast<size_t>(row * k() + columns.begin) * width_;
      if (const std::optional<DType> type = float_type(stored_.dtype)) {
        widen_bytes(*type, at, to);
      } else if (width_ == 1) {
        read_codes<int8_t>(at, scale_of(row), to);
      } else {
        read_codes<int16_t>(at, scale_of(row), to);
      }
    }
  }

  bool is_quantized() const override { return !float_type(stored_.dtype).has_value(); }

  void release_rows(int64_t begin, int64_t count) const override {
    const int64_t end = std::min(begin + count, stored_.rows);
    if (stored_.file == nullptr || begin >= end) return;
    const size_t row_bytes = static_cast<size_t>(k()) * width_;
    stored_.file->release_pages(
        stored_.bytes.subspan(static_cast<size_t>(begin) * row_bytes, static_cast<size_t>(end - begin) * row_bytes));
  }

 private:
  float scale_of(int64_t row) const {
    return stored_.scales.size() == 1 ? stored_.scales.front() : stored_.scales[static_cast<size_t>(row)];
  }
  template <typename Code>
  static void read_codes(const std::byte* at, float scale, std::span<float> to) {
    for (float& value : to) {
      Code code;
      std::memcpy(&code, at, sizeof code);
      at += sizeof code;
      value = static_cast<float>(code) / scale;
    }
  }

  Stored stored_;
  size_t width_;
};

StatusOr<std::vector<float>> read_scales(WeightMap& weights, const std::string& name, int64_t rows, WeightUse use) {
  const std::optional<WeightMap::Form> form = weights.form_of(name);
  const int64_t count = form.has_value() && form->shape.size() == 1 && form->shape[0] == 1 ? 1 : rows;
  const int64_t shape[] = {count};
  ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, weights.get_bytes(name, "F32", shape, use));
  std::vector<float> scales(static_cast<size_t>(count));
  std::memcpy(scales.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    if (std::isfinite(scales[i]) && scales[i] != 0) continue;
    return weights.tensor_error(name, str_cat("element ", i, " is 0 or not finite"));
  }
  return scales;
}

}  // namespace

bool Ct2MatrixReader::has(const WeightMap& weights, std::string_view name) const {
  const std::optional<WeightMap::Form> form = weights.form_of(name);
  if (!form.has_value() || form->shape.empty()) return false;
  return form->dtype == "I8" || form->dtype == "I16" || (longer_.contains(form->name) && float_type(form->dtype));
}

StatusOr<std::unique_ptr<MatrixSource>> Ct2MatrixReader::open(WeightMap& weights, std::string_view name, int64_t n,
                                                              int64_t k, WeightUse use) const {
  const WeightMap::Form form = *weights.form_of(name);
  Stored stored{.dtype = form.dtype, .rows = form.shape[0], .file = form.file};
  int64_t inputs = 1;  // checked when the file was read
  for (const int64_t side : form.shape.subspan(1)) inputs *= side;
  const int64_t rows = stored.rows + (longer_.contains(form.name) ? 1 : 0);
  if (rows != n || inputs != k) {
    return weights.tensor_error(name,
                                str_cat("is of ", rows, " times ", inputs, " weights, expected ", n, " times ", k));
  }
  ASSIGN_OR_RETURN(stored.bytes, weights.get_bytes(name, form.dtype, form.shape, use));
  if (!float_type(form.dtype).has_value()) {
    ASSIGN_OR_RETURN(stored.scales, read_scales(weights, str_cat(name, "_scale"), stored.rows, use));
  }
  return std::unique_ptr<MatrixSource>(std::make_unique<Ct2Matrix>(n, k, std::move(stored)));
}

}  // namespace transept
