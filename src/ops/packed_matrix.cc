#include "ops/packed_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "ops/int8_rounding.h"

namespace transept {
namespace {

static_assert(kPanelColumns == 32);

// How panels hold one format.
struct PanelLayout {
  WeightFormat weights;
  DType element;
  int64_t group;       // inputs of an output that lie side by side
  int64_t depth_step;  // k is padded to a multiple
};

constexpr PanelLayout kLayouts[] = {{kFloat32Format, DType::kFloat32, 1, 1},
                                    {kFloat16Format, DType::kFloat16, 1, 1},
                                    {kBFloat16Format, DType::kBFloat16, 2, kBFloat16Depth},
                                    {kInt8Format, DType::kInt8, 4, kInt8Depth}};
// Of any groups; what a panel consists of is nibble_panels.h's.
constexpr PanelLayout kNibbleLayout = {int4_format(32), DType::kUInt8, kNibbleInputs, 1};

// Null: there are no such panels.
const PanelLayout* find_layout(const WeightFormat& weights) {
  if (weights.is_nibbles()) return weights.group % 32 == 0 ? &kNibbleLayout : nullptr;
  const auto found = std::ranges::find(kLayouts, weights, &PanelLayout::weights);
  return found == std::end(kLayouts) ? nullptr : found;
}

const PanelLayout& layout_of(const WeightFormat& weights) {
  const PanelLayout* layout = find_layout(weights);
  CHECK(layout != nullptr, "there are no panels of ", weight_format_name(weights));
  return *layout;
}

int64_t group_of(const PackedFormat& format) { return layout_of(format.weights).group; }

int64_t padded_depth(int64_t k, const PanelLayout& layout) { return round_up(k, layout.depth_step); }

// Unset: more than can be.
std::optional<int64_t> panel_bytes(int64_t n, int64_t k, const PanelLayout& layout) {
  constexpr int64_t kMost = INT64_MAX / 8;  // nothing below overflows by rounding up and bytes an element
  if (n < 0 || k < 0 || n > kMost || k > kMost) return std::nullopt;
  const std::optional<int64_t> weights = checked_mul(round_up(n, kPanelColumns), padded_depth(k, layout));
  if (!weights.has_value() || *weights > kMost) return std::nullopt;
  return *weights * static_cast<int64_t>(dtype_bytes(layout.element));
}

// The same, of nibbles.
std::optional<int64_t> nibble_bytes(int64_t n, const NibblePanels& nibbles) {
  constexpr int64_t kMost = int64_t{1} << 40;  // inputs, outputs, and bytes of all
  if (n < 0 || n > kMost || nibbles.k < 0 || nibbles.k > kMost || nibbles.num_groups > nibbles.k) return std::nullopt;
  const int64_t panels = ceil_div(n, kPanelColumns);
  const std::optional<int64_t> all = checked_mul(panels, nibbles.panel_bytes());
  return all.has_value() && *all <= kMost ? std::optional(nibbles.bytes(panels)) : std::nullopt;
}

// Where weight t of the first column of a panel lies.
constexpr int64_t place_of(int64_t t, int64_t group) { return t / group * group * kPanelColumns + t % group; }

}  // namespace

float round_to_int8(std::span<const float> weights, std::span<int8_t> codes) {
  CHECK(weights.size() == codes.size());
  uint32_t largest = 0;
  for (const float weight : weights) largest = std::max(largest, magnitude(weight));
  const Int8Rounding rounding(largest);
  for (size_t t = 0; t < weights.size(); ++t) {
    codes[t] = static_cast<int8_t>(int8_code(weights[t], rounding.inverse, rounding.mask));
  }
  return rounding.scale;
}

bool has_panels(const WeightFormat& weights) { return find_layout(weights) != nullptr; }

bool holds_inputs(const WeightFormat& weights, int64_t k) {
  if (weights.is_nibbles()) return nibbles_hold(weights, k);
  return weights != kInt8Format || k <= kMaxInt8Inputs;
}

bool operator==(const NibbleMeanings& a, const NibbleMeanings& b) {
  return std::ranges::equal(a.table, b.table) && std::ranges::equal(a.input_groups, b.input_groups) &&
         a.num_groups == b.num_groups;
}

DType panels_dtype(const WeightFormat& weights) { return layout_of(weights).element; }

std::vector<int64_t> panels_shape(int64_t n, int64_t k, const WeightFormat& weights) {
  const PanelLayout& layout = layout_of(weights);
  const int64_t panels = ceil_div(n, kPanelColumns);
  if (weights.is_nibbles()) return {NibblePanels::of(weights, k).bytes(panels)};
  if (layout.group == 1) return {panels, k, kPanelColumns};
  return {panels, padded_depth(k, layout) / layout.group, kPanelColumns, layout.group};
}

PackedMatrix::PackedMatrix(int64_t n, int64_t k, PackedFormat format, const PackedBytes& bytes)
    : n_(n),
      k_(k),
      depth_(padded_depth(k, layout_of(format.weights))),
      num_panels_(ceil_div(n, kPanelColumns)),
      format_(format),
      nibbles_(format.weights.is_nibbles() ? NibblePanels::of(format.weights, k) : NibblePanels()),
      views_(bytes) {}

PackedMatrix::PackedMatrix(int64_t n, int64_t k, PackedFormat format, std::shared_ptr<PagePool> pool,
                           const NibbleMeanings& nibbles)
    : PackedMatrix(n, k, format, PackedBytes()) {
  if (is_nibbles()) {
    CHECK(k % kNibbleInputs == 0 &&
          (nibbles.input_groups.empty() ? nibbles_hold(format.weights, k) : format.inputs != InputRounding::kGroups));
    CHECK(!nibbles_.has_table || nibbles.table.size() == kNibbleValues);
    nibbles_.has_input_groups = !nibbles.input_groups.empty();
    if (nibbles_.has_input_groups) nibbles_.num_groups = nibbles.num_groups;
  }
  const std::optional<int64_t> num_bytes =
      is_nibbles() ? nibble_bytes(n, nibbles_) : transept::panel_bytes(n, k, layout_of(format.weights));
  CHECK(num_bytes.has_value(), "weights of ", n, " x ", k);
  CHECK(format.is_consistent());
  if (pool == nullptr) pool = std::make_shared<PagePool>(0);
  const auto num_outputs = static_cast<size_t>(num_panels_ * kPanelColumns);
  const size_t num_scales = format.weights == kInt8Format ? num_outputs : 0;
  // One piece of memory: panels are whole cache lines, and so is what stands behind them.
  const auto num_panel_bytes = static_cast<size_t>(*num_bytes);
  data_ = pool->allocate(num_panel_bytes + num_scales * (sizeof(float) + sizeof(int32_t))).data();
  keeper_ = std::move(pool);
  views_.panels = {data_, num_panel_bytes};
  if (is_nibbles()) {
    const std::span<const float> table = nibbles_.has_table ? nibbles.table : std::span<const float>();
    std::ranges::copy(std::as_bytes(table), data_ + nibbles_.table_place(num_panels_));
    std::ranges::copy(std::as_bytes(nibbles.input_groups), data_ + nibbles_.input_groups_place(num_panels_));
  }
  if (format.weights != kInt8Format) return;
  CHECK(depth_ <= kMaxInt8Inputs, "int8 weights of ", k, " inputs");
  scales_ = reinterpret_cast<float*>(data_ + num_panel_bytes);
  sums_ = reinterpret_cast<int32_t*>(scales_ + num_scales);
  views_.scales = {scales_, num_scales};
  views_.sums = {sums_, num_scales};
}

StatusOr<PackedMatrix> PackedMatrix::view(int64_t n, int64_t k, PackedFormat format, const PackedBytes& bytes,
                                          std::shared_ptr<PagePool> pool) {
  const std::string name = weight_format_name(format.weights);
  const PanelLayout* layout = find_layout(format.weights);
  if (layout == nullptr) return invalid_argument("there are no panels of ", name);
  const bool is_int8 = format.weights == kInt8Format, is_nibbles = format.weights.is_nibbles();
  NibblePanels nibbles = is_nibbles ? NibblePanels::of(format.weights, k) : NibblePanels();
  std::optional<int64_t> num_bytes = is_nibbles ? nibble_bytes(n, nibbles) : transept::panel_bytes(n, k, *layout);
  if (!num_bytes.has_value()) return invalid_argument("a matrix of ", n, " x ", k, " is too large");
  if (is_nibbles && bytes.panels.size() != static_cast<size_t>(*num_bytes)) {
    nibbles.has_input_groups = true;
    num_bytes = nibbles.bytes(ceil_div(n, kPanelColumns));
  }
  if (!holds_inputs(format.weights, k) || (!is_int8 && format.has_wide_inputs())) {
    return invalid_argument(name, format.has_wide_inputs() ? " with wide inputs" : "", " cannot hold a matrix of ", k,
                            " inputs");
  }
  // Products in bfloat16 read panels as such.
  if (!format.is_consistent()) return invalid_argument(name, " is not multiplied with inputs in bfloat16");
  const auto num_outputs = static_cast<size_t>(is_int8 ? round_up(n, kPanelColumns) : 0);
  if (bytes.panels.size() != static_cast<size_t>(*num_bytes) || bytes.scales.size() != num_outputs ||
      bytes.sums.size() != num_outputs) {
    return invalid_argument(bytes.panels.size(), " bytes of panels, ", bytes.scales.size(), " scales and ",
                            bytes.sums.size(), " sums are not those of a matrix of ", n, " x ", k, " in ", name);
  }
  if (reinterpret_cast<uintptr_t>(bytes.panels.data()) % Arena::kAlignment != 0) {
    return invalid_argument("panels are not aligned to ", Arena::kAlignment, " bytes");
  }
  // Products subtract zero * sum in 32 bits, which kMaxInt8Inputs keeps from overflowing for sums that are true.
  const int64_t furthest = 128 * k;
  for (const int32_t sum : bytes.sums) {
    if (sum > furthest || sum < -furthest) return invalid_argument("a sum of ", k, " weights is ", sum);
  }
  PackedMatrix matrix(n, k, format, bytes);
  matrix.nibbles_ = nibbles;
  for (const int32_t group : matrix.nibble_meanings().input_groups) {
    if (group < 0 || group >= nibbles.num_groups) return invalid_argument("an input belongs to group ", group);
  }
  if (nibbles.has_input_groups) matrix.format_.inputs = InputRounding::kUsual;
  matrix.keeper_ = std::move(pool);
  return matrix;
}

int64_t PackedMatrix::column_place(int64_t row) const {
  const int64_t in_panel = row % kPanelColumns * group_of(format_);
  return row / kPanelColumns * depth_ * kPanelColumns + in_panel;
}

template <int64_t kGroup, typename T>
void PackedMatrix::scatter(int64_t row, int64_t num_rows, const T* rounded, int64_t row_step) {
  // A stretch of a panel stays in the first-level cache while every row puts its share into it.
  constexpr int64_t kStretch = 64;
  for (int64_t begin = 0; begin < row_step; begin += kStretch) {
    const int64_t end = std::min(row_step, begin + kStretch);
    for (int64_t r = 0; r < num_rows; ++r) {
      const T* from = rounded + r * row_step;
      T* to = column<T>(row + r);
      for (int64_t t = begin; t < end; t += kGroup) std::memcpy(to + t * kPanelColumns, from + t, kGroup * sizeof(T));
    }
  }
}

void PackedMatrix::put_codes(int64_t row, int64_t num_rows, const int8_t* codes, const float* scales) {
  for (int64_t r = 0; r < num_rows; ++r) {
    int32_t sum = 0;
    for (int64_t t = 0; t < k_; ++t) sum += codes[r * depth_ + t];
    sums_[row + r] = sum;
    scales_[row + r] = scales[r];
  }
  scatter<4>(row, num_rows, codes, depth_);
}

void PackedMatrix::check_writable(int64_t row, int64_t num_rows) const {
  CHECK(data_ != nullptr || n_ == 0, "a view is written to");
  CHECK(row >= 0 && num_rows >= 0 && num_rows <= n_ - row);
}

void PackedMatrix::set_codes(int64_t row, int64_t num_rows, std::span<const int8_t> codes,
                             std::span<const float> scales) {
  check_writable(row, num_rows);
  CHECK(format_.weights == kInt8Format && std::ssize(codes) == num_rows * k_ && std::ssize(scales) == num_rows);
  std::vector<int8_t> padded(static_cast<size_t>(num_rows * depth_));
  for (int64_t r = 0; r < num_rows; ++r) std::copy_n(codes.data() + r * k_, k_, padded.data() + r * depth_);
  put_codes(row, num_rows, padded.data(), scales.data());
}

void PackedMatrix::set_rows(int64_t row, int64_t num_rows, std::span<const float> weights) {
  check_writable(row, num_rows);
  CHECK(std::ssize(weights) == num_rows * k_);
  const auto converted = [&]<int64_t kGroup>(auto&& convert) {
    std::vector<uint16_t> rounded(static_cast<size_t>(num_rows * depth_));
    for (int64_t r = 0; r < num_rows; ++r) {
      const float* from = weights.data() + r * k_;
      std::transform(from, from + k_, rounded.data() + r * depth_, convert);
    }
    scatter<kGroup>(row, num_rows, rounded.data(), depth_);
  };
  if (is_nibbles()) {
    for (int64_t r = 0; r < num_rows; ++r) {
      round_to_nibbles(row + r, weights.subspan(static_cast<size_t>(r * k_), static_cast<size_t>(k_)));
    }
    return;
  }
  if (format_.weights == kFloat32Format) return scatter<1>(row, num_rows, weights.data(), k_);
  if (format_.weights == kBFloat16Format) return converted.operator()<2>(float_to_bfloat16);
  if (format_.weights == kFloat16Format) return converted.operator()<1>(float_to_float16);
  std::vector<int8_t> codes(static_cast<size_t>(num_rows * depth_));
  std::vector<float> scales(static_cast<size_t>(num_rows));
  for (int64_t r = 0; r < num_rows; ++r) {
    const auto from = static_cast<size_t>(r * k_), to = static_cast<size_t>(r * depth_),
               count = static_cast<size_t>(k_);
    scales[static_cast<size_t>(r)] = round_to_int8(weights.subspan(from, count), std::span(codes).subspan(to, count));
  }
  put_codes(row, num_rows, codes.data(), scales.data());
}

void PackedMatrix::round_to_nibbles(int64_t row, std::span<const float> weights) {
  CHECK(!nibbles_.has_zero && !nibbles_.has_table && !nibbles_.has_input_groups);
  std::vector<int8_t> codes(weights.size());
  std::vector<float> scales(static_cast<size_t>(nibbles_.num_groups));
  const auto count = static_cast<size_t>(nibbles_.group);
  for (size_t g = 0; g < scales.size(); ++g) {
    scales[g] = round_to_int4(weights.subspan(g * count, count), std::span(codes).subspan(g * count, count));
  }
  set_nibbles(row, codes, scales, {});
}

void PackedMatrix::set_nibbles(int64_t row, std::span<const int8_t> codes, std::span<const float> scales,
                               std::span<const int16_t> zeros) {
  check_writable(row, 1);
  CHECK(is_nibbles());
  put_nibbles(nibbles_, nibble_panel(row), row % kPanelColumns, codes);
  put_scales(nibbles_, nibble_panel(row), row % kPanelColumns, scales, zeros);
}

template <int64_t kGroup, typename T, typename Convert>
void PackedMatrix::scatter_inputs(int64_t row, int64_t num_rows, int64_t input, std::span<const float> weights,
                                  Convert convert) {
  const int64_t num_inputs = std::ssize(weights) / num_rows;
  for (int64_t r = 0; r < num_rows;) {
    const int64_t count = std::min(kPanelColumns - (row + r) % kPanelColumns, num_rows - r);  // the rest of a panel
    T* const first = column<T>(row + r);
    for (int64_t t = 0; t < num_inputs; ++t) {
      const float* from = weights.data() + t * num_rows + r;
      T* to = first + place_of(input + t, kGroup);
      for (int64_t c = 0; c < count; ++c) to[c * kGroup] = convert(from[c]);
    }
    r += count;
  }
}

void PackedMatrix::set_int8_inputs(int64_t row, int64_t num_rows, std::span<const float> weights) {
  using Columns = Int8Columns<kPanelColumns>;
  for (int64_t r = 0; r < num_rows;) {
    const int64_t place = (row + r) % kPanelColumns, count = std::min(kPanelColumns - place, num_rows - r);
    Columns columns(weights.data() + r, num_rows, k_, count);
    auto* const first = reinterpret_cast<int8_t*>(data_) + column_place(row + r);
    for (int64_t t = 0; t < k_; t += Columns::kInputs) {
      const std::array<uint32_t, kPanelColumns> words = columns.round(t);
      std::memcpy(first + t * kPanelColumns, words.data(), static_cast<size_t>(count * Columns::kInputs));
    }
    std::copy_n(columns.scales().data(), count, scales_ + row + r);
    std::copy_n(columns.sums().data(), count, sums_ + row + r);
    r += count;
  }
}

void PackedMatrix::set_inputs(int64_t row, int64_t num_rows, int64_t input, int64_t num_inputs,
                              std::span<const float> weights) {
  check_writable(row, num_rows);
  CHECK(input >= 0 && num_inputs >= 0 && num_inputs <= k_ - input && std::ssize(weights) == num_rows * num_inputs);
  CHECK((!format_.weights.is_codes() || num_inputs == k_) && !is_nibbles(),
        "a scale belongs to all inputs of an output");
  if (weights.empty()) return;
  if (format_.weights == kInt8Format) return set_int8_inputs(row, num_rows, weights);
  if (format_.weights == kBFloat16Format) {
    return scatter_inputs<2, uint16_t>(row, num_rows, input, weights, float_to_bfloat16);
  }
  if (format_.weights == kFloat16Format) {
    return scatter_inputs<1, uint16_t>(row, num_rows, input, weights, float_to_float16);
  }
  scatter_inputs<1, float>(row, num_rows, input, weights, [](float weight) { return weight; });
}

template <typename T>
void PackedMatrix::copy_columns(const PackedMatrix& from, std::span<const int32_t> rows) {
  const int64_t num_groups = depth_ / group_of(format_);
  // A stretch of a panel stays in the first-level cache while every output puts its share into it.
  constexpr int64_t kStretch = 64;
  const auto place = [num_groups](int64_t row) {
    return row / kPanelColumns * num_groups * kPanelColumns + row % kPanelColumns;
  };
  for (int64_t begin = 0; begin < num_groups; begin += kStretch) {
    const int64_t end = std::min(num_groups, begin + kStretch);
    for (size_t i = 0; i < rows.size(); ++i) {
      const T* source = reinterpret_cast<const T*>(from.panels()) + place(rows[i]);
      T* target = reinterpret_cast<T*>(data_) + place(static_cast<int64_t>(i));
      for (int64_t t = begin; t < end; ++t) target[t * kPanelColumns] = source[t * kPanelColumns];
    }
  }
}

void PackedMatrix::copy_rows(const PackedMatrix& from, std::span<const int32_t> rows) {
  CHECK(data_ != nullptr && static_cast<int64_t>(rows.size()) <= n_ && from.k_ == k_ && from.format_ == format_);
  DCHECK(std::ranges::all_of(rows, [&](int32_t row) { return row >= 0 && row < from.n_; }));
  if (is_nibbles()) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      copy_nibbles(nibbles_, from.nibble_panel(rows[i]), rows[i] % kPanelColumns, nibble_panel(row),
                   row % kPanelColumns);
    }
  } else if (format_.weights == kFloat16Format) {
    copy_columns<uint16_t>(from, rows);
  } else {
    copy_columns<uint32_t>(from, rows);
  }
  if (format_.weights != kInt8Format) return;
  for (size_t i = 0; i < rows.size(); ++i) {
    scales_[i] = from.views_.scales[static_cast<size_t>(rows[i])];
    sums_[i] = from.views_.sums[static_cast<size_t>(rows[i])];
  }
}

void PackedMatrix::get_row(int64_t row, float* out) const {
  CHECK(row >= 0 && row < n_);
  if (is_nibbles()) return get_nibble_row(row, out);
  const int64_t group = group_of(format_);
  const auto gather = [&]<typename T>(const T* from, auto&& convert) {
    for (int64_t t = 0; t < k_; ++t) out[t] = convert(from[place_of(t, group)]);
  };
  if (format_.weights == kFloat32Format) return gather(column<float>(row), [](float w) { return w; });
  if (format_.weights == kBFloat16Format) return gather(column<uint16_t>(row), bfloat16_to_float);
  if (format_.weights == kFloat16Format) return gather(column<uint16_t>(row), float16_to_float);
  const float scale = views_.scales[static_cast<size_t>(row)];
  gather(column<int8_t>(row), [scale](int8_t w) { return static_cast<float>(w) * scale; });
}

void PackedMatrix::get_nibble_row(int64_t row, float* out) const {
  std::vector<int8_t> codes(static_cast<size_t>(k_));
  std::vector<float> scales(static_cast<size_t>(nibbles_.num_groups));
  std::vector<int16_t> zeros(nibbles_.has_zero ? scales.size() : 0);
  get_codes(row, codes.data());
  get_scales(row, scales, zeros);
  const NibbleMeanings meanings = nibble_meanings();
  for (int64_t t = 0; t < k_; ++t) {
    const auto g = static_cast<size_t>(nibbles_.group_of(t, meanings.input_groups.data()));
    const int place = codes[static_cast<size_t>(t)] + kNibbleOffset;
    const float value = meanings.table[static_cast<size_t>(place)];
    out[t] = (value - (zeros.empty() ? 0.0f : static_cast<float>(zeros[g]))) * scales[g];
  }
}

void PackedMatrix::get_scales(int64_t row, std::span<float> scales, std::span<int16_t> zeros) const {
  CHECK(row >= 0 && row < n_ && is_nibbles());
  transept::get_scales(nibbles_, nibble_panel(row), row % kPanelColumns, scales, zeros);
}

NibbleMeanings PackedMatrix::nibble_meanings() const {
  NibbleMeanings meanings{integer_table(), {}, nibbles_.num_groups};
  if (nibbles_.has_table) {
    const std::byte* table = panels() + nibbles_.table_place(num_panels_);
    meanings.table = {reinterpret_cast<const float*>(table), kNibbleValues};
  }
  if (nibbles_.has_input_groups) {
    const std::byte* groups = panels() + nibbles_.input_groups_place(num_panels_);
    meanings.input_groups = {reinterpret_cast<const int32_t*>(groups), static_cast<size_t>(k_)};
  }
  return meanings;
}

int64_t PackedMatrix::panel_bytes() const {
  if (is_nibbles()) return nibbles_.panel_bytes();
  return depth_ * kPanelColumns * static_cast<int64_t>(dtype_bytes(layout_of(format_.weights).element));
}

void PackedMatrix::get_codes(int64_t row, int8_t* out) const {
  CHECK(row >= 0 && row < n_ && (is_nibbles() || format_.weights == kInt8Format));
  if (is_nibbles()) return transept::get_nibbles(nibbles_, nibble_panel(row), row % kPanelColumns, out);
  const int8_t* from = column<int8_t>(row);
  const int64_t group = group_of(format_);
  for (int64_t t = 0; t < k_; ++t) out[t] = from[place_of(t, group)];
}

PackedMatrix PackedMatrix::placed(DeviceMemory& memory) && {
  if (memory.is_host()) return std::move(*this);
  const size_t panels = static_cast<size_t>(round_up(static_cast<int64_t>(views_.panels.size()), kPageAlignment));
  const size_t scales = static_cast<size_t>(round_up(static_cast<int64_t>(views_.scales.size_bytes()), kPageAlignment));
  const DeviceBuffer buffer = memory.allocate(panels + scales + views_.sums.size_bytes(), MemoryUse::kWeights);
  if (buffer.data() == nullptr && bytes() > 0) throw std::bad_alloc();
  memory.copy_in(buffer.data(), views_.panels.data(), views_.panels.size());
  memory.copy_in(buffer.data() + panels, views_.scales.data(), views_.scales.size_bytes());
  memory.copy_in(buffer.data() + panels + scales, views_.sums.data(), views_.sums.size_bytes());
  PackedMatrix matrix =
      seen_at({{buffer.data(), views_.panels.size()},
               {reinterpret_cast<const float*>(buffer.data() + panels), views_.scales.size()},
               {reinterpret_cast<const int32_t*>(buffer.data() + panels + scales), views_.sums.size()}});
  matrix.keeper_ = buffer.keeper();
  return matrix;
}

PackedMatrix PackedMatrix::seen_at(const PackedBytes& bytes) const {
  CHECK(bytes.panels.size() == views_.panels.size() && bytes.scales.size() == views_.scales.size() &&
        bytes.sums.size() == views_.sums.size());
  PackedMatrix matrix(n_, k_, format_, bytes);
  matrix.nibbles_ = nibbles_;
  return matrix;
}

}  // namespace transept
