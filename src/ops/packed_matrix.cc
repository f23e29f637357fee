#include "ops/packed_matrix.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checked_math.h"

namespace transept {
namespace {

static_assert(kPanelColumns == 32);

// Sums of 255 * 127 * k must fit an int32.
constexpr int64_t kMaxInt8Depth = 65536;

int64_t padded_depth(int64_t k, DType storage) { return storage == DType::kInt8 ? round_up(k, kInt8Depth) : k; }

size_t packed_bytes(int64_t n, int64_t depth, DType storage) {
  CHECK(n >= 0 && depth >= 0);
  const std::optional<int64_t> weights = checked_mul(round_up(n, kPanelColumns), depth);
  CHECK(weights.has_value() && *weights <= INT64_MAX / 4, "weights of ", n, " x ", depth);
  return static_cast<size_t>(*weights) * dtype_bytes(storage);
}

// Where weight t of the first column of a panel lies in int8.
constexpr int64_t int8_place(int64_t t) { return t / 4 * 4 * kPanelColumns + t % 4; }

}  // namespace

PackedMatrix::PackedMatrix(int64_t n, int64_t k, WeightFormat format)
    : n_(n),
      k_(k),
      depth_(padded_depth(k, format.storage)),
      num_panels_(ceil_div(n, kPanelColumns)),
      format_(format),
      data_(packed_bytes(n, depth_, format.storage)) {
  CHECK(format.storage == DType::kInt8 || !format.wide_inputs);
  if (format.storage != DType::kInt8) return;
  CHECK(depth_ <= kMaxInt8Depth, "int8 weights of ", k, " inputs");
  scales_.resize(static_cast<size_t>(num_panels_ * kPanelColumns));
  offsets_.resize(scales_.size());
}

int64_t PackedMatrix::column_place(int64_t row) const {
  const int64_t in_panel = row % kPanelColumns * (format_.storage == DType::kInt8 ? 4 : 1);
  return row / kPanelColumns * depth_ * kPanelColumns + in_panel;
}

void PackedMatrix::set_row(int64_t row, std::span<const float> weights) {
  CHECK(row >= 0 && row < n_ && static_cast<int64_t>(weights.size()) == k_);
  const auto scatter = [&]<typename T>(T* to, auto&& convert) {
    for (int64_t t = 0; t < k_; ++t) to[t * kPanelColumns] = convert(weights[static_cast<size_t>(t)]);
  };
  switch (format_.storage) {
    case DType::kFloat32: return scatter(column<float>(row), [](float w) { return w; });
    case DType::kBFloat16: return scatter(column<uint16_t>(row), float_to_bfloat16);
    case DType::kFloat16: return scatter(column<uint16_t>(row), float_to_float16);
    case DType::kInt8: break;
    default: CHECK(false, "weights cannot be stored as ", dtype_name(format_.storage));
  }
  float largest = 0;
  bool is_finite = true;
  for (const float w : weights) {
    largest = std::max(largest, std::abs(w));
    is_finite &= std::isfinite(w);
  }
  const auto output = static_cast<size_t>(row);
  // A weight that is not a number must show.
  scales_[output] = is_finite ? largest / 127 : std::nanf("");
  const float inverse = is_finite && largest > 0 ? 127 / largest : 0;
  int8_t* to = column<int8_t>(row);
  int32_t sum = 0;
  for (int64_t t = 0; t < k_; ++t) {
    const float scaled = inverse == 0 ? 0 : weights[static_cast<size_t>(t)] * inverse;
    const auto q = static_cast<int8_t>(std::clamp(std::nearbyint(scaled), -127.0f, 127.0f));
    to[int8_place(t)] = q;
    sum += q;
  }
  offsets_[output] = 128 * sum;
}

void PackedMatrix::get_row(int64_t row, float* out) const {
  CHECK(row >= 0 && row < n_);
  const auto gather = [&]<typename T>(const T* from, auto&& convert) {
    for (int64_t t = 0; t < k_; ++t) out[t] = convert(from[t * kPanelColumns]);
  };
  switch (format_.storage) {
    case DType::kFloat32: return gather(column<float>(row), [](float w) { return w; });
    case DType::kBFloat16: return gather(column<uint16_t>(row), bfloat16_to_float);
    case DType::kFloat16: return gather(column<uint16_t>(row), float16_to_float);
    default: break;
  }
  const int8_t* from = column<int8_t>(row);
  for (int64_t t = 0; t < k_; ++t) {
    out[t] = static_cast<float>(from[int8_place(t)]) * scales_[static_cast<size_t>(row)];
  }
}

}  // namespace transept
