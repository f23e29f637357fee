// Proves that attention in windows is its definition, written for each row of the map by itself: over every backend and
// instruction level, for shifts, maps that windows do not divide, and maps that are smaller than a window; with a bias
// (Swin's) and without one (DaViT's, which fills up small maps). And that patches merge as the reference's do.
#include "layers/window_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/backends.h"
#include "base/folder_testing.h"
#include "base/random_values_testing.h"
#include "layers/patch_merging.h"
#include "ops/cpu_device.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

using testing::TestFolder;

constexpr int64_t kHeads = 3, kHeadDim = 5, kDim = kHeads * kHeadDim, kSide = 4;

std::vector<float> random_values(int64_t count, uint32_t seed, float size = 0.5f) {
  return testing::random_normals(count, seed, size);
}

// A checkpoint of tensors that the test keeps, too.
class Checkpoint final {
 public:
  void add(const std::string& name, std::vector<int64_t> shape, uint32_t seed, float size = 0.5f) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    values_[name] = random_values(count, seed, size);
    tensors_.push_back({name, "F32", std::move(shape), testing::bytes_of(values_[name])});
  }
  const std::vector<float>& operator[](const std::string& name) const { return values_.at(name); }
  std::unique_ptr<WeightMap> open() {
    folder_.write("model.safetensors", testing::safetensors_bytes(tensors_));
    return std::move(WeightMap::open(folder_.path())).value();
  }

 private:
  TestFolder folder_;
  std::vector<testing::TestTensor> tensors_;
  std::map<std::string, std::vector<float>> values_;
};

using Row = std::vector<double>;

Row normed(std::span<const float> x, const std::vector<float>& weight, const std::vector<float>& bias) {
  double mean = 0, variance = 0;
  for (const float value : x) mean += value / static_cast<double>(x.size());
  for (const float value : x) variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
  Row y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i]);
  return y;
}

Row product(const Row& x, const std::vector<float>& weight, const std::vector<float>* bias) {
  Row y(weight.size() / x.size());
  for (size_t i = 0; i < y.size(); ++i) {
    if (bias != nullptr) y[i] = (*bias)[i];
    for (size_t j = 0; j < x.size(); ++j) y[i] += x[j] * weight[i * x.size() + j];
  }
  return y;
}

// ---- windows

struct Variant {
  std::string backend;
  Isa isa;
};

class WindowAttentionTest : public ::testing::TestWithParam<Variant> {
 protected:
  WindowAttentionTest() {
    uint32_t seed = 1;
    for (const char* name : {"q", "k", "v", "out"}) {
      checkpoint_.add(str_cat("a.", name, ".weight"), {kDim, kDim}, seed++, 0.26f);
      checkpoint_.add(str_cat("a.", name, ".bias"), {kDim}, seed++);
    }
    checkpoint_.add("norm.weight", {kDim}, seed++, 1);
    checkpoint_.add("norm.bias", {kDim}, seed++);
    checkpoint_.add("table", {(2 * kSide - 1) * (2 * kSide - 1), kHeads}, seed++, 1);
    weights_ = checkpoint_.open();
  }

  void SetUp() override {
    if (GetParam().isa > detect_isa()) GTEST_SKIP() << isa_name(GetParam().isa) << " is not present on this processor";
  }

  WindowAttention load(int64_t shift, bool is_davits = false) {
    WindowAttention::Options options;
    options.attention.prefix = "a";
    options.attention.q = "q";
    options.attention.k = "k";
    options.attention.v = "v";
    options.attention.out = "out";
    options.attention.dim = kDim;
    options.attention.num_heads = kHeads;
    options.attention.scale = 0.4f;
    if (!is_davits) options.bias_table = "table";
    if (is_davits) options.small_maps = SmallMaps::kFillUp;
    options.side = kSide;
    options.shift = shift;
    options.norm = "norm";
    return std::move(WindowAttention::load(*weights_, options, threads_)).value();
  }

  std::vector<float> run(const WindowAttention& attention, const MapSize& map, std::vector<float> x, DType kv_dtype) {
    const auto backend = std::move(make_attention_backend(GetParam().backend)).value();
    CpuDevice device{threads_, GetParam().isa};
    Arena arena(1 << 22);
    Context context{device, arena};
    attention.forward(context, *backend, kv_dtype, map, TensorView(x.data(), DType::kFloat32, {map.num_rows(), kDim}));
    EXPECT_EQ(arena.num_overflows(), 0);
    return x;
  }

  // The place (y, x) of the map that is filled up: zeros outside of the map.
  Row projected(const std::string& name, const MapSize& map, const std::vector<float>& x, int64_t row, int64_t column) {
    Row in(kDim);
    if (row < map.height && column < map.width) {
      in = normed(std::span(x).subspan(static_cast<size_t>((row * map.width + column) * kDim), kDim),
                  checkpoint_["norm.weight"], checkpoint_["norm.bias"]);
    }
    return product(in, checkpoint_["a." + name + ".weight"], &checkpoint_["a." + name + ".bias"]);
  }

  // x + attention(norm(x)) of one row: over all places whose window is the row's after the roll.
  Row expected(const MapSize& map, const std::vector<float>& x, int64_t shift, int64_t row, int64_t column,
               bool is_davits) {
    const int64_t smaller = std::min(map.height, map.width), side = is_davits ? kSide : std::min(kSide, smaller);
    if (smaller <= kSide) shift = 0;
    const int64_t height = (map.height + side - 1) / side * side, width = (map.width + side - 1) / side * side;
    const auto rolled = [&](int64_t i, int64_t length) { return (i + length - shift) % length; };
    const auto wrapped = [&](int64_t i, int64_t length) { return rolled(i, length) >= length - shift; };
    const Row q = projected("q", map, x, row, column);
    std::vector<Row> values, scores(kHeads);
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const int64_t down = rolled(row, height) - rolled(i, height), right = rolled(column, width) - rolled(j, width);
        if (rolled(row, height) / side != rolled(i, height) / side) continue;
        if (rolled(column, width) / side != rolled(j, width) / side) continue;
        const Row k = projected("k", map, x, i, j);
        values.push_back(projected("v", map, x, i, j));
        const bool is_apart = wrapped(row, height) != wrapped(i, height) || wrapped(column, width) != wrapped(j, width);
        const int64_t place = (down + kSide - 1) * (2 * kSide - 1) + right + kSide - 1;
        for (int64_t head = 0; head < kHeads; ++head) {
          const double bias = is_davits ? 0 : checkpoint_["table"][static_cast<size_t>(place * kHeads + head)];
          double score = bias - (is_apart ? 100.0 : 0.0);
          for (int64_t d = 0; d < kHeadDim; ++d) {
            const auto at = static_cast<size_t>(head * kHeadDim + d);
            score += 0.4f * q[at] * k[at];
          }
          scores[static_cast<size_t>(head)].push_back(score);
        }
      }
    }
    return finished(x, row * map.width + column, values, scores);
  }

  Row finished(const std::vector<float>& x, int64_t index, const std::vector<Row>& values, std::vector<Row> scores) {
    Row mixed(kDim);
    for (int64_t head = 0; head < kHeads; ++head) {
      Row& of_head = scores[static_cast<size_t>(head)];
      double sum = 0;
      for (double& score : of_head) sum += score = std::exp(score);
      for (size_t key = 0; key < values.size(); ++key) {
        for (int64_t d = 0; d < kHeadDim; ++d) {
          const auto at = static_cast<size_t>(head * kHeadDim + d);
          mixed[at] += of_head[key] / sum * values[key][at];
        }
      }
    }
    Row y = product(mixed, checkpoint_["a.out.weight"], &checkpoint_["a.out.bias"]);
    for (int64_t i = 0; i < kDim; ++i) y[static_cast<size_t>(i)] += x[static_cast<size_t>(index * kDim + i)];
    return y;
  }

  // What is added to x, row by row: the error of each, relative to their mean size.
  void expect_right(const MapSize& map, int64_t shift, DType kv_dtype, double tolerance, bool is_davits = false) {
    const std::vector<float> x = random_values(map.num_rows() * kDim, 99, 1);
    const std::vector<float> y = run(load(shift, is_davits), map, x, kv_dtype);
    double size = 0;
    std::vector<double> errors;
    for (int64_t row = 0; row < map.num_rows(); ++row) {
      const Row wanted = expected(map, x, shift, row / map.width, row % map.width, is_davits);
      double& error = errors.emplace_back(0);
      for (int64_t i = 0; i < kDim; ++i) {
        const auto at = static_cast<size_t>(row * kDim + i);
        error += std::pow(y[at] - wanted[static_cast<size_t>(i)], 2);
        size += std::pow(wanted[static_cast<size_t>(i)] - x[at], 2) / static_cast<double>(map.num_rows());
      }
    }
    for (size_t row = 0; row < errors.size(); ++row) {
      ASSERT_LT(std::sqrt(errors[row] / size), tolerance)
          << map.height << " x " << map.width << ", shift " << shift << ", row " << row;
    }
  }

  // With VNNI and AMX queries and probabilities are rounded to 8 bits, too, and values have a scale for 64 keys
  // (attention/encoder_int8.h): errors are 1.3 to 2.2 times those of other levels in maps of several windows, and up to
  // 6 times in one of few keys. Elsewhere only keys and values are rounded, token by token.
  double int8_tolerance() const {
    return GetParam().backend == "cpu" && GetParam().isa >= Isa::kAvx512Vnni ? 0.06 : 0.03;
  }

  static constexpr MapSize kMaps[] = {{8, 8}, {5, 5}, {9, 6}, {6, 11}, {4, 9}, {9, 4},
                                      {4, 4}, {3, 7}, {7, 2}, {1, 5},  {1, 1}};

  Checkpoint checkpoint_;
  std::unique_ptr<WeightMap> weights_;
  ThreadPool threads_{2};
};

INSTANTIATE_TEST_SUITE_P(Backends, WindowAttentionTest,
                         ::testing::Values(Variant{"reference", Isa::kGeneric}, Variant{"cpu", Isa::kGeneric},
                                           Variant{"cpu", Isa::kAvx2}, Variant{"cpu", Isa::kAvx512},
                                           Variant{"cpu", Isa::kAvx512Vnni}, Variant{"cpu", Isa::kAmx}),
                         [](const auto& v) { return v.param.backend + "_" + std::string(isa_name(v.param.isa)); });

TEST_P(WindowAttentionTest, IsItsDefinition) {
  for (const MapSize& map : kMaps) {
    for (const int64_t shift : {0, 2, 1}) {
      expect_right(map, shift, DType::kFloat32, 2e-6);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(WindowAttentionTest, IsItsDefinitionOverRoundedKeys) {
  for (const MapSize& map : kMaps) {
    expect_right(map, 2, DType::kInt8, int8_tolerance());
    if (HasFatalFailure()) return;
  }
}

TEST_P(WindowAttentionTest, WithoutABiasSmallMapsAreFilledUp) {
  for (const MapSize& map : kMaps) {
    expect_right(map, 0, DType::kFloat32, 2e-6, true);
    expect_right(map, 0, DType::kInt8, int8_tolerance(), true);
    if (HasFatalFailure()) return;
  }
}

// A dry run knows how many rows the map has, and not its sides.
TEST_P(WindowAttentionTest, ADryRunTakesTheMemoryOfAnyMap) {
  const auto backend = std::move(make_attention_backend(GetParam().backend)).value();
  CpuDevice device{threads_, GetParam().isa};
  const WindowAttention attention = load(0, true);
  for (const MapSize& map : {MapSize{1, 1}, {1, 60}, {60, 1}, {5, 12}, {200, 130}}) {
    std::vector<float> x(static_cast<size_t>(map.num_rows() * kDim));
    const TensorView view(x.data(), DType::kFloat32, {map.num_rows(), kDim});
    Arena measuring = Arena::measuring(), arena(size_t{1} << 26);
    Context dry{device, measuring, true}, context{device, arena};
    attention.forward(dry, *backend, DType::kFloat32, {1, map.num_rows()}, view);
    attention.forward(context, *backend, DType::kFloat32, map, view);
    EXPECT_GE(measuring.high_water_bytes(), arena.high_water_bytes()) << map.height << " x " << map.width;
  }
}

// More windows than are computed at once: each is the same as in another slice.
TEST_P(WindowAttentionTest, WindowsOfAllSlicesAreAlike) {
  const int64_t across = WindowAttention::rows_at_once(kDim) / 64 + 5, width = across * kSide;
  std::vector<float> x;
  const std::vector<float> one = random_values(kSide * kSide * kDim, 5, 1);
  for (int64_t row = 0; row < 2 * kSide; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const int64_t from = (row % kSide * kSide + column % kSide) * kDim;
      x.insert(x.end(), one.begin() + from, one.begin() + from + kDim);
    }
  }
  const std::vector<float> y = run(load(0), {2 * kSide, width}, x, DType::kFloat32);
  for (int64_t row = 0; row < 2 * kSide; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const auto at = [&](int64_t i, int64_t j) { return y.begin() + (i * width + j) * kDim; };
      ASSERT_TRUE(std::equal(at(row, column), at(row, column) + kDim, at(row % kSide, column % kSide)))
          << row << ", " << column;
    }
  }
}

// ---- merging

class PatchMergingTest : public ::testing::Test {
 protected:
  PatchMergingTest() {
    checkpoint_.add("m.norm.weight", {4 * kDim}, 1, 1);
    checkpoint_.add("m.norm.bias", {4 * kDim}, 2);
    checkpoint_.add("m.reduction.weight", {2 * kDim, 4 * kDim}, 3);
    weights_ = checkpoint_.open();
  }

  Row expected(const MapSize& map, const std::vector<float>& x, int64_t row, int64_t column) {
    std::vector<float> square;
    for (const auto& [down, right] : {std::pair(0, 0), {1, 0}, {0, 1}, {1, 1}}) {
      const int64_t i = 2 * row + down, j = 2 * column + right;
      for (int64_t d = 0; d < kDim; ++d) {
        const bool is_there = i < map.height && j < map.width;
        square.push_back(is_there ? x[static_cast<size_t>((i * map.width + j) * kDim + d)] : 0);
      }
    }
    return product(normed(square, checkpoint_["m.norm.weight"], checkpoint_["m.norm.bias"]),
                   checkpoint_["m.reduction.weight"], nullptr);
  }

  Checkpoint checkpoint_;
  std::unique_ptr<WeightMap> weights_;
  ThreadPool threads_{2};
  CpuDevice device_{threads_};
  Arena arena_{size_t{1} << 23};
  Context context_{.device = device_, .arena = arena_};
};

TEST_F(PatchMergingTest, IsAProductOfFourNeighbours) {
  const PatchMerging merging = std::move(PatchMerging::load(*weights_, "m", kDim, threads_)).value();
  for (const MapSize& map : {MapSize{4, 6}, {5, 3}, {4, 1}, {1, 4}, {1, 1}, {7, 8}}) {
    const MapSize merged = PatchMerging::merged(map);
    const std::vector<float> x = random_values(map.num_rows() * kDim, 9, 1);
    std::vector<float> memory = x, y(static_cast<size_t>(merged.num_rows() * 2 * kDim));
    memory.resize(std::max(x.size(), y.size()));
    const TensorView in(memory.data(), DType::kFloat32, {map.num_rows(), kDim});
    merging.forward(context_, map, in, TensorView(y.data(), DType::kFloat32, {merged.num_rows(), 2 * kDim}));
    for (int64_t i = 0; i < merged.num_rows(); ++i) {
      const Row wanted = expected(map, x, i / merged.width, i % merged.width);
      for (int64_t d = 0; d < 2 * kDim; ++d) {
        ASSERT_NEAR(y[static_cast<size_t>(i * 2 * kDim + d)], wanted[static_cast<size_t>(d)], 2e-5);
      }
    }
  }
}

// So many squares that they come in parts, whose results lie over rows of the same part, and behind rows of later ones.
TEST_F(PatchMergingTest, MergesInPlace) {
  const PatchMerging merging = std::move(PatchMerging::load(*weights_, "m", kDim, threads_)).value();
  for (const MapSize& map : {MapSize{301, 203}, {1, 20001}, {20001, 1}}) {
    const MapSize merged = PatchMerging::merged(map);
    std::vector<float> x = random_values(map.num_rows() * kDim, 9, 1);
    std::vector<float> y(static_cast<size_t>(merged.num_rows() * 2 * kDim));
    x.resize(std::max(x.size(), y.size()));
    const auto view = [&](std::vector<float>& values, const MapSize& size, int64_t dim) {
      return TensorView(values.data(), DType::kFloat32, {size.num_rows(), dim});
    };
    merging.forward(context_, map, view(x, map, kDim), view(y, merged, 2 * kDim));
    merging.forward(context_, map, view(x, map, kDim), view(x, merged, 2 * kDim));
    x.resize(y.size());
    EXPECT_EQ(x, y) << map.height << " x " << map.width;
  }
}

}  // namespace
}  // namespace transept
