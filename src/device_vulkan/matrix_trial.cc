#include "device_vulkan/matrix_trial.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <tuple>

#include "base/clock.h"

namespace transept {
namespace {

constexpr uint32_t kMostRows = 64, kPanel = 32;
constexpr uint32_t kTimedRows[] = {8, 64};              // of a step, and of a small encode
constexpr int64_t kMostTimedBytes = int64_t{64} << 20;  // of weights
constexpr double kShort = 0.05;                         // seconds: what takes less is timed again

// Memory of a timeline.
class Room final {
 public:
  Room(VulkanTimeline& timeline, uint64_t bytes) : timeline_(timeline), bytes_(bytes) {
    StatusOr<std::byte*> found = timeline.allocate(bytes);
    if (found.ok()) {
      address_ = *found;
    } else {
      status_ = found.status();
    }
  }
  ~Room() {
    if (address_ != nullptr) timeline_.free(address_);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  const Status& status() const { return status_; }
  BufferRange part(uint64_t begin, uint64_t bytes) const { return timeline_.range(address_ + begin, bytes); }
  BufferRange all() const { return part(0, bytes_); }
  void put(std::span<const std::byte> bytes) { timeline_.copy_in(address_, bytes.data(), bytes.size()); }
  void fill(uint8_t value) { timeline_.fill(address_, value, bytes_); }
  std::vector<float> floats() const {
    std::vector<float> values(bytes_ / sizeof(float));
    timeline_.copy_out(values.data(), address_, values.size() * sizeof(float));
    return values;
  }

 private:
  VulkanTimeline& timeline_;
  uint64_t bytes_;
  std::byte* address_ = nullptr;
  Status status_;
};

uint64_t padded(int64_t n) { return (static_cast<uint64_t>(n) + kPanel - 1) / kPanel * kPanel; }
uint64_t panels_bytes(const ModelProduct& of) {
  uint64_t elements = 1;
  for (const int64_t dim : panels_shape(of.n, of.k, of.weights)) elements *= static_cast<uint64_t>(dim);
  return elements * static_cast<uint64_t>(of.weights.bits) / 8;
}

// A product with weights and twice kMostRows rows of inputs; rows from kMostRows on are the first ones again.
class TriedProduct final {
 public:
  TriedProduct(VulkanTimeline& timeline, const ModelProduct& of, uint64_t rows_of_y)
      : timeline_(timeline),
        of_(of),
        n_(static_cast<uint32_t>(of.n)),
        k_(static_cast<uint32_t>(of.k)),
        x_(timeline, uint64_t{2} * kMostRows * k_ * 4),
        panels_(timeline, panels_bytes(of)),
        scales_(timeline, padded(of.n) * 4),
        sums_(timeline, padded(of.n) * 4),
        q_(timeline, DeviceRoundedRows::q_words(uint64_t{2} * kMostRows, k_, of.inputs) * 4),
        codes_(timeline, uint64_t{2} * kMostRows * 8),
        y_(timeline, rows_of_y * n_ * 4) {}

  Status status() const {
    for (const Room* room : {&x_, &panels_, &scales_, &sums_, &q_, &codes_, &y_}) RETURN_IF_ERROR(room->status());
    return timeline_.status();
  }

  // Numbers of any size: rows differ by powers of two.
  void fill_randomly() {
    std::mt19937 random(static_cast<uint32_t>(of_.k));
    std::normal_distribution<float> normal;
    PackedMatrix packed(of_.n, of_.k, {of_.weights, of_.inputs});
    std::vector<float> row(k_);
    for (int64_t i = 0; i < of_.n; ++i) {
      for (float& value : row) value = normal(random);
      packed.set_row(i, row);
    }
    panels_.put(packed.views().panels);
    if (of_.is_int8()) {
      scales_.put(std::as_bytes(packed.views().scales));
      sums_.put(std::as_bytes(packed.views().sums));
    }
    std::vector<float> x(size_t{2} * kMostRows * k_);
    for (size_t i = 0; i < x.size() / 2; ++i) {
      x[i] = x[x.size() / 2 + i] = std::ldexp(normal(random), static_cast<int>(i / k_ * 7 % 40) - 20);
    }
    x_.put(std::as_bytes(std::span(x)));
    round();
  }
  // Numbers of no meaning: for their time.
  void fill_anyhow() {
    for (Room* room : {&x_, &panels_, &scales_, &sums_}) room->fill(0x11);
    round();
  }

  // The product of rows [first, first + rows) to rows of y from `to` on.
  void record(uint32_t first, uint32_t rows, uint64_t to, const DeviceTiling& tiling) {
    const BufferRange to_range = y_.part(to * n_ * 4, uint64_t{rows} * n_ * 4);
    const DeviceMatrix y = DeviceMatrix::dense(to_range.buffer, rows, n_, to_range.begin);
    if (of_.is_int8()) {
      return record_product(timeline_.recorder(), rounded(first, rows),
                            DeviceInt8Weights{panels_.all(), scales_.all(), sums_.all(), n_, k_, tiling}, {}, y);
    }
    const DeviceFormat format = of_.weights == kFloat16Format ? DeviceFormat::kFloat16 : DeviceFormat::kBFloat16;
    record_product(timeline_.recorder(), inputs(first, rows), {panels_.all(), n_, k_, format, tiling}, {}, y);
  }

  std::vector<float> y() const { return y_.floats(); }

 private:
  DeviceMatrix inputs(uint32_t first, uint32_t rows) const {
    const BufferRange range = x_.part(uint64_t{first} * k_ * 4, uint64_t{rows} * k_ * 4);
    return DeviceMatrix::dense(range.buffer, rows, k_, range.begin);
  }
  DeviceRoundedRows rounded(uint32_t first, uint32_t rows) const {
    const uint64_t row_bytes = DeviceRoundedRows::q_words(1, k_, of_.inputs) * 4;
    return {q_.part(first * row_bytes, rows * row_bytes), codes_.part(uint64_t{first} * 8, uint64_t{rows} * 8), rows,
            k_, of_.inputs};
  }
  void round() {
    if (of_.is_int8() && status().ok()) {
      record_round_rows(timeline_.recorder(), inputs(0, 2 * kMostRows), rounded(0, 2 * kMostRows));
    }
  }

  VulkanTimeline& timeline_;
  ModelProduct of_;
  uint32_t n_, k_;
  Room x_, panels_, scales_, sums_, q_, codes_, y_;
};

class Trial final {
 public:
  Trial(VulkanTimeline& timeline, const MatrixOptions& options, bool is_int8)
      : timeline_(timeline), options_(options), is_int8_(is_int8) {
    const std::optional<MatrixTile>& tile = is_int8 ? timeline.info().int8_tile : timeline.info().half_tile;
    if (tile.has_value()) tile_ = *tile;
  }

  uint32_t rows() const { return tile_.m; }

  // Why the rows of such a product are not kept apart, or are not what shader cores give; "": they are.
  StatusOr<std::string> check(ModelProduct of) {
    of.n = std::min<int64_t>(of.n, 2 * kPanel + of.n % kPanel);  // a panel's sums depend on k alone
    constexpr uint32_t kAll = kMostRows * (kMostRows + 1) / 2;
    TriedProduct product(timeline_, of, kMostRows + kAll + kMostRows);
    RETURN_IF_ERROR(product.status());
    product.fill_randomly();
    // Each row alone; then 1 to 64 rows, of which each has been every place's; then by shader cores.
    for (uint32_t row = 0; row < kMostRows; ++row) product.record(row, 1, row, tiling(of));
    uint64_t to = kMostRows;
    for (uint32_t rows = 1; rows <= kMostRows; to += rows++) product.record(first_of(rows), rows, to, tiling(of));
    product.record(0, kMostRows, to, {});
    std::vector<float> y = product.y();
    RETURN_IF_ERROR(timeline_.status());
    const auto row_at = [&](uint64_t at) {
      return std::span(y).subspan(at * static_cast<uint64_t>(of.n), static_cast<size_t>(of.n));
    };
    to = kMostRows;
    for (uint32_t rows = 1; rows <= kMostRows; to += rows++) {
      if (options_.on_rows != nullptr) {
        options_.on_rows(rows,
                         std::span(y).subspan(to * static_cast<uint64_t>(of.n), rows * static_cast<uint64_t>(of.n)));
      }
      for (uint32_t i = 0; i < rows; ++i) {
        const std::span<const float> alone = row_at((first_of(rows) + i) % kMostRows), among = row_at(to + i);
        if (std::memcmp(alone.data(), among.data(), alone.size_bytes()) == 0) continue;
        return str_cat("a row among ", rows, " has other bits than alone, with ", of.k, " inputs");
      }
    }
    for (uint32_t row = 0; row < kMostRows; ++row) {
      if (!are_alike(row_at(row), row_at(to + row))) {
        return str_cat("its sums are not those of shader cores, with ", of.k, " inputs");
      }
    }
    return std::string();
  }

  // Seconds of both forms over the product: by matrices, by shader cores.
  StatusOr<std::pair<double, double>> time(ModelProduct of) {
    const int64_t row_bytes = std::max<int64_t>(1, of.k * of.weights.bits / 8);
    const auto range = static_cast<int64_t>(std::min<uint64_t>(timeline_.max_range_bytes(), kMostTimedBytes));
    of.n = std::clamp<int64_t>(range / row_bytes / kPanel * kPanel, 1, of.n);
    TriedProduct product(timeline_, of, kMostRows);
    RETURN_IF_ERROR(product.status());
    product.fill_anyhow();
    const double with = seconds(product, tiling(of)), without = seconds(product, {});
    RETURN_IF_ERROR(timeline_.status());
    return std::pair(with, without);
  }

  std::string name() const { return str_cat(is_int8_ ? "int8" : "float16", " ", tile_.m, "x", tile_.n, "x", tile_.k); }

 private:
  static uint32_t first_of(uint32_t rows) { return rows * 7 % kMostRows; }

  DeviceTiling tiling(const ModelProduct& of) const {
    // bfloat16 that is random is within float16's range by any of some powers of two.
    const uint32_t exponent = of.weights == kBFloat16Format ? 127 + 10 : 127;
    return {tile_.m, options_.rounds_inputs && !is_int8_, exponent};
  }

  bool are_alike(std::span<const float> a, std::span<const float> b) const {
    if (is_int8_) return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
    float largest = 0;
    for (const float value : b) largest = std::max(largest, std::abs(value));
    const float bound = (options_.rounds_inputs ? 1e-2f : 1e-4f) * largest;
    return std::equal(a.begin(), a.end(), b.begin(), [&](float x, float y) { return std::abs(x - y) <= bound; });
  }

  double now() const {
    if (options_.now != nullptr) return options_.now();
    return std::chrono::duration<double>(steady_now().time_since_epoch()).count();
  }
  // The least of several; the first, in which the kernel is made, does not count.
  double seconds(TriedProduct& product, const DeviceTiling& tiling) {
    double least = 0;
    for (int i = 0; i < 4; ++i) {
      timeline_.flush();
      const double begin = now();
      for (const uint32_t rows : kTimedRows) product.record(0, rows, 0, tiling);
      timeline_.flush();
      const double took = now() - begin;
      least = i <= 1 ? took : std::min(least, took);
      if (i > 0 && took > kShort) break;
    }
    return least;
  }

  VulkanTimeline& timeline_;
  const MatrixOptions& options_;
  bool is_int8_;
  MatrixTile tile_;
};

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 0.1 ? "%.3g ms" : "%.0f ms", seconds * 1e3);
  return text;
}

// The tile's rows, or 0, with the reason in the report.
StatusOr<uint32_t> rows_of_kind(VulkanTimeline& timeline, const ModelProducts& all, bool is_int8,
                                const MatrixOptions& options, std::vector<std::string>& report) {
  std::vector<ModelProduct> products;
  std::copy_if(all.begin(), all.end(), std::back_inserter(products),
               [&](const ModelProduct& product) { return product.is_int8() == is_int8; });
  Trial trial(timeline, options, is_int8);
  if (products.empty() || trial.rows() == 0) return 0u;
  const auto off = [&](const std::string& why) {
    report.push_back(str_cat("matrices: ", trial.name(), ": off: ", why));
    return 0u;
  };
  std::set<std::tuple<int32_t, WeightLayout, InputRounding, int64_t, int64_t>> checked;
  for (const ModelProduct& of : products) {
    const bool has_short_panel = of.n % kPanel != 0;
    if (!checked.emplace(of.weights.bits, of.weights.layout, of.inputs, of.k, has_short_panel ? of.n % kPanel : 0)
             .second)
      continue;
    ASSIGN_OR_RETURN(const std::string why, trial.check(of));
    if (why.empty()) continue;
    if (options.choice == MatrixChoice::kOn) {
      return absl::FailedPreconditionError(str_cat("--device-matrices on: ", trial.name(), ": ", why));
    }
    return off(why);
  }
  double with = 0, without = 0;
  for (const ModelProduct& of : products) {
    if (options.choice == MatrixChoice::kOn) break;
    ASSIGN_OR_RETURN(const auto times, trial.time(of));
    with += times.first;
    without += times.second;
  }
  const std::string times =
      str_cat(milliseconds(with), " over this model's products, by shader cores ", milliseconds(without));
  if (with > without) return off(str_cat("slower: ", times));
  const char* const inputs = is_int8                 ? ""
                             : options.rounds_inputs ? ", inputs rounded to float16"
                                                     : ", inputs in two halves";
  report.push_back(
      str_cat("matrices: ", trial.name(), inputs, options.choice == MatrixChoice::kOn ? "" : ": " + times));
  return trial.rows();
}

}  // namespace

StatusOr<MatrixForms> try_matrices(VulkanTimeline& timeline, const ModelProducts& products,
                                   const MatrixOptions& options, std::vector<std::string>& report) {
  if (options.choice == MatrixChoice::kOff) return MatrixForms();
  const bool has_halves =
      std::any_of(products.begin(), products.end(), [](const ModelProduct& product) { return !product.is_int8(); });
  if (options.rounds_inputs && !has_halves) {
    return absl::FailedPreconditionError(
        "--device-arithmetic float16: the model has no weights in float16 or bfloat16: give --dtype float16");
  }
  MatrixForms forms{.rounds_inputs = options.rounds_inputs};
  ASSIGN_OR_RETURN(forms.half_rows, rows_of_kind(timeline, products, false, options, report));
  ASSIGN_OR_RETURN(forms.int8_rows, rows_of_kind(timeline, products, true, options, report));
  return forms;
}

std::optional<uint32_t> half_exponent(std::span<const DeviceWeightRange> found) {
  uint32_t largest = 0, depth = 0;
  for (const DeviceWeightRange& range : found) {
    largest = std::max(largest, range.largest);
    depth = std::max(depth, range.depth);
  }
  constexpr int kOne = 127, kDepthOfZero = 384;  // exponents of 2^0; kernels/weight_range.comp
  constexpr int kMostHalf = kOne + 15, kLeastHalf = kOne - 24;
  if (depth == 0) return kOne;
  const int exponent = static_cast<int>(largest >> 7), lowest = kDepthOfZero - static_cast<int>(depth);
  if (exponent == 255 || lowest < 1) return std::nullopt;  // not finite; below what all devices multiply
  const int by = std::min(kMostHalf - exponent + kOne, 253);
  if (by < 1 || lowest + by - kOne < kLeastHalf) return std::nullopt;
  return static_cast<uint32_t>(by);
}

StatusOr<std::optional<uint32_t>> half_exponent(VulkanTimeline& timeline, const std::byte* words, uint64_t bytes) {
  const uint64_t piece = std::min<uint64_t>(timeline.max_range_bytes() / 64 * 64, uint64_t{1} << 30);
  std::vector<DeviceWeightRange> all;
  for (uint64_t begin = 0; begin < bytes; begin += piece) {
    const uint64_t size = std::min(piece, bytes - begin);
    std::vector<DeviceWeightRange> found(weight_range_groups(size / 4));
    ASSIGN_OR_RETURN(std::byte* const room, timeline.allocate(found.size() * sizeof(DeviceWeightRange)));
    record_weight_range(timeline.recorder(), timeline.range(words + begin, size),
                        timeline.range(room, found.size() * sizeof(DeviceWeightRange)));
    timeline.copy_out(found.data(), room, found.size() * sizeof(DeviceWeightRange));
    timeline.free(room);
    RETURN_IF_ERROR(timeline.status());
    all.insert(all.end(), found.begin(), found.end());
  }
  return half_exponent(all);
}

}  // namespace transept
