// Products at every level present: right against the double-precision oracle, and the same bits for a row whatever
// else is computed beside it and on however many threads.
#include "ops/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "base/checked_math.h"
#include "base/sanitized_testing.h"
#include "ops/activation.h"
#include "ops/cpu_device.h"
#include "ops/ops_testing.h"
#include "ops/select_kernels.h"

namespace transept {
namespace {

using test_util::matrix;
using test_util::pack;
using test_util::random_floats;
using test_util::rows_with_outliers;

constexpr PackedFormat kFormats[] = {{kFloat32Format},
                                     {kBFloat16Format},
                                     {kBFloat16Format, InputRounding::kBFloat16},
                                     {kFloat16Format},
                                     {kInt8Format},
                                     {kInt8Format, InputRounding::kWide},
                                     {kInt8Format, InputRounding::kOutliers}};

std::string name_of(PackedFormat format) {
  return std::string(weight_format_name(format.weights)) +
         (format.inputs == InputRounding::kOutliers   ? ", wide inputs of outliers"
          : format.has_wide_inputs()                  ? ", wide inputs"
          : format.inputs == InputRounding::kBFloat16 ? ", bfloat16 inputs"
                                                      : "");
}

bool is_rough_as_defined(const float* x, int64_t k, double width) {
  double squares = 0, count = 0;
  for (int64_t t = 0; t < k; ++t) squares += static_cast<double>(x[t]) * x[t], count += x[t] == 0 ? 0 : 1;
  return count / 12 * std::pow(width / 255, 2) > 1e-4 * squares;
}

// What a product makes of a row of x, written out from the definition in gemm.h.
void round_as_defined(PackedFormat format, Isa isa, float* x, int64_t k) {
  if (multiplies_in_bfloat16(format, isa)) {
    for (int64_t t = 0; t < k; ++t) x[t] = bfloat16_to_float(float_to_bfloat16(x[t]));
  }
  if (format.weights != kInt8Format) return;
  float low = 0, high = 0;
  for (int64_t t = 0; t < k; ++t) low = std::min(low, x[t]), high = std::max(high, x[t]);
  if (format.has_wide_inputs() &&
      (format.inputs != InputRounding::kOutliers || is_rough_as_defined(x, k, high - low))) {
    high = std::max(high, -low);
    const float scale = high / 127, inverse = 127 / high;
    for (int64_t t = 0; t < k; ++t) {
      const float scaled = x[t] * inverse;
      const float whole = std::nearbyint(scaled);
      x[t] = (whole + std::nearbyint((scaled - whole) * 254) / 254) * scale;
    }
    return;
  }
  const float scale = (high - low) / 255, inverse = 255 / (high - low);
  const float zero = std::nearbyint(-low * inverse);
  for (int64_t t = 0; t < k; ++t)
    x[t] = (std::clamp(std::nearbyint(x[t] * inverse) + zero, 0.0f, 255.0f) - zero) * scale;
}

std::vector<float> rows_of(const PackedMatrix& packed) {
  std::vector<float> w(static_cast<size_t>(packed.n() * packed.k()));
  for (int64_t i = 0; i < packed.n(); ++i) packed.get_row(i, w.data() + i * packed.k());
  return w;
}

// k partial sums of standard normal products, of size up to sqrt(k), are each rounded by 2^-24: a random walk of about
// 2^-24 k at most; four times that for the largest of many. The activations' slope is at most 1.2.
double tolerance(int64_t k, Activation activation) {
  const double sum = 2e-6 + 2.4e-7 * static_cast<double>(k);
  return activation == Activation::kNone || activation == Activation::kRelu ? sum : sum * 1.2 + 1e-6;
}

class GemmTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, GemmTest,
                         ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16,
                                           Isa::kAvx512Fp16, Isa::kAmx),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

struct Shape {
  int64_t m, n, k;
};

void expect_matches_reference(Isa isa, const Shape& shape, Activation activation, bool bias, bool residual, int threads,
                              PackedFormat format = {}) {
  const auto [m, n, k] = shape;
  ThreadPool pool(threads);
  Arena arena(size_t{64} << 20);
  CpuDevice device{pool, isa};
  Context context{.device = device, .arena = arena};
  // Rows with gaps: a slice of a wider matrix.
  std::vector<float> x = rows_with_outliers(m, k + 3, 1);
  const PackedMatrix packed = pack(random_floats(n * k, 2), n, k, format);
  std::vector<float> w = rows_of(packed);
  std::vector<float> b = random_floats(n, 3);
  std::vector<float> y(static_cast<size_t>(m * (n + 5)), 7.0f);
  std::vector<float> expected(static_cast<size_t>(m * n));
  std::vector<float> r = random_floats(m * n, 4);
  const TensorView x_view = matrix(x, m, k + 3).columns(0, k);
  const TensorView y_view = matrix(y, m, n + 5).columns(0, n);
  Epilogue epilogue{.bias = bias ? b.data() : nullptr, .activation = activation, .residual = {}};
  if (residual) epilogue.residual = matrix(r, m, n);
  std::vector<float> rounded = x;
  for (int64_t i = 0; i < m; ++i) round_as_defined(format, isa, rounded.data() + i * (k + 3), k);
  gemm_reference(matrix(rounded, m, k + 3).columns(0, k), matrix(w, n, k), epilogue, matrix(expected, m, n));
  if (residual) {  // the residual may be y itself
    for (int64_t i = 0; i < m; ++i)
      std::memcpy(y_view.row(i), r.data() + i * n, static_cast<size_t>(n) * sizeof(float));
    epilogue.residual = y_view;
  }
  gemm(context, x_view, packed, epilogue, y_view);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      ASSERT_NEAR(y_view.row(i)[j], expected[static_cast<size_t>(i * n + j)], tolerance(k, activation))
          << name_of(format) << " m " << m << " n " << n << " k " << k << " at " << i << ", " << j;
    }
    for (int64_t j = n; j < n + 5; ++j) ASSERT_EQ(y_view.row(i)[j], 7.0f) << "written past the row's end";
  }
  EXPECT_EQ(arena.num_overflows(), 0);
}

TEST_P(GemmTest, MatchesTheReferenceOverShapes) {
  int count = 0;
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15, 16, 29, 100}) {
    for (const int64_t n : {1, 31, 32, 33, 100, 224}) {
      for (const int64_t k : {1, 7, 64, 129}) {
        if (kSanitized && ++count % 11 != 0) continue;  // 11 is prime to the 24 pairs of n and k: every size comes
        for (const PackedFormat format : kFormats) {
          expect_matches_reference(GetParam(), {m, n, k}, Activation::kNone, (m + n) % 2 == 0, (n + k) % 2 == 0, 2,
                                   format);
        }
      }
    }
  }
}

TEST_P(GemmTest, MatchesTheReferenceWhereRowsFallIntoBlocks) {
  for (const PackedFormat format : kFormats) {
    expect_matches_reference(GetParam(), {kSanitized ? 330 : 700, kSanitized ? 33 : 70, 600}, Activation::kNone, true,
                             true, 2, format);
    expect_matches_reference(GetParam(), {3, kSanitized ? 200 : 600, 700}, Activation::kRelu, true, false, 3, format);
  }
}

TEST_P(GemmTest, FusesEveryActivation) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kSilu, Activation::kTanh, Activation::kQuickGelu}) {
    for (const int64_t m : {1, 3, 20}) {
      for (const PackedFormat format : kFormats) {
        expect_matches_reference(GetParam(), {m, 45, 10}, activation, true, m != 3, 1, format);
      }
    }
  }
}

void expect_same_bits_in_any_batch(Isa isa, PackedFormat format) {
  constexpr int64_t kMaxRows = kSanitized ? 70 : 200;
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{100, 150}, {300, 64}}) {
    std::vector<float> x = rows_with_outliers(kMaxRows, k, 5);
    const PackedMatrix w = pack(random_floats(n * k, 6), n, k, format);
    std::vector<float> b = random_floats(n, 7);
    const Epilogue epilogue{.bias = b.data(), .activation = Activation::kGelu, .residual = {}};
    std::vector<float> alone(static_cast<size_t>(kMaxRows * n)), batch(alone.size());
    const TensorView x_view = matrix(x, kMaxRows, k), alone_view = matrix(alone, kMaxRows, n),
                     batch_view = matrix(batch, kMaxRows, n);
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      Arena arena(size_t{16} << 20);
      CpuDevice device{pool, isa};
      Context context{.device = device, .arena = arena};
      if (threads == 1) {
        for (int64_t i = 0; i < kMaxRows; ++i) {
          gemm(context, x_view.rows(i, i + 1), w, epilogue, alone_view.rows(i, i + 1));
        }
      }
      for (int64_t m = 2; m <= kMaxRows; m += threads == 1 ? 1 : 7) {
        std::fill(batch.begin(), batch.end(), 0.0f);
        gemm(context, x_view.rows(0, m), w, epilogue, batch_view.rows(0, m));
        ASSERT_EQ(std::memcmp(batch.data(), alone.data(), static_cast<size_t>(m * n) * sizeof(float)), 0)
            << name_of(format) << " m " << m << " threads " << threads;
      }
    }
  }
}

TEST_P(GemmTest, RowsHaveTheSameBitsAloneAndInAnyBatch) {
  for (const PackedFormat format : kFormats) expect_same_bits_in_any_batch(GetParam(), format);
}

// `keeps`: the pieces are written into memory for all of the product, otherwise into a piece a thread.
void expect_pieces_of_the_whole(Context& context, const PackedMatrix& w, std::vector<float>& x,
                                std::vector<float>& bias, bool keeps) {
  const int64_t m = static_cast<int64_t>(x.size()) / w.k(), n = w.n(),
                num_threads = cpu_of(context).threads().num_threads();
  std::vector<float> whole(static_cast<size_t>(m * n)), seen(whole.size());
  gemm(context, matrix(x, m, w.k()), w, {.bias = bias.data()}, matrix(whole, m, n));

  std::vector<float> y(static_cast<size_t>(keeps ? m * n : num_threads * m * kPieceColumns));
  const TensorView out = keeps ? matrix(y, m, n) : matrix(y, num_threads * m, kPieceColumns);
  gemm_by_columns(context, matrix(x, m, w.k()), w, bias.data(), out, [&](const ColumnPiece& piece) {
    for (int64_t row = 0; row < m; ++row) {
      const float* from = piece.y.row(row);
      for (int64_t j = piece.begin; j < piece.end; ++j) seen[static_cast<size_t>(row * n + j)] += from[j - piece.begin];
    }
  });
  EXPECT_EQ(seen, whole);
  if (keeps) {
    EXPECT_EQ(y, whole);
  }
}

// Each column once, with the whole product's bits.
TEST_P(GemmTest, PiecesOfColumnsHaveTheWholeProductsBits) {
  const int64_t n = 2 * kPieceColumns + 37, k = 70;
  ThreadPool pool(3);
  Arena arena(size_t{16} << 20);
  CpuDevice device{pool, GetParam()};
  Context context{.device = device, .arena = arena};
  std::vector<float> bias = random_floats(n, 3);
  for (const PackedFormat format : kFormats) {
    if (format.has_wide_inputs()) continue;  // not for those
    const PackedMatrix w = pack(random_floats(n * k, 2), n, k, format);
    for (const int64_t m : {1, 5, 13, 40}) {
      SCOPED_TRACE(std::string(name_of(format)) + " m " + std::to_string(m));
      std::vector<float> x = random_floats(m * k, 1);
      expect_pieces_of_the_whole(context, w, x, bias, true);
      expect_pieces_of_the_whole(context, w, x, bias, false);
    }
  }
}

// Chosen columns of a matrix as parts of their own, and their biases.
class ChosenColumns final {
 public:
  ChosenColumns(const PackedMatrix& whole, const std::vector<float>& bias, std::vector<int32_t> ids)
      : ids_(std::move(ids)) {
    const auto count = static_cast<size_t>(ceil_div(std::ssize(ids_), kPartColumns));
    matrices_.reserve(count);
    biases_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      PackedMatrix& part = matrices_.emplace_back(kPartColumns, whole.k(), whole.format());
      // Filled before: what was there must not show.
      part.copy_rows(whole, std::vector<int32_t>(static_cast<size_t>(kPartColumns), 3));
      const size_t begin = i * static_cast<size_t>(kPartColumns);
      const size_t size = std::min(ids_.size() - begin, static_cast<size_t>(kPartColumns));
      part.copy_rows(whole, std::span(ids_).subspan(begin, size));
      biases_[i].resize(static_cast<size_t>(kPartColumns));
      for (size_t j = 0; j < size; ++j) biases_[i][j] = bias[static_cast<size_t>(ids_[begin + j])];
      parts_.push_back({&part, biases_[i].data()});
    }
  }

  const std::vector<int32_t>& ids() const { return ids_; }
  std::span<const GemmPart> parts() const { return parts_; }

 private:
  std::vector<int32_t> ids_;
  std::vector<PackedMatrix> matrices_;
  std::vector<std::vector<float>> biases_;
  std::vector<GemmPart> parts_;
};

// Three products with columns of their own in one call, whose y lie in wider rows.
void expect_parts_of_the_whole(Context& context, const PackedMatrix& w, std::span<const int64_t> rows) {
  const int64_t n = w.n(), k = w.k(), stride = n + 5;
  std::vector<float> bias = random_floats(n, 3);
  std::vector<ChosenColumns> chosen;
  chosen.emplace_back(w, bias, std::vector<int32_t>{0});
  std::vector<int32_t> most, descending;
  for (int32_t i = 0; i < n; i += i % 3 == 0 ? 1 : 2) most.push_back(i);
  for (auto i = static_cast<int32_t>(n) - 1; i >= 0; i -= 2) descending.push_back(i);
  chosen.emplace_back(w, bias, most);
  chosen.emplace_back(w, bias, descending);
  std::vector<std::vector<float>> x, y;
  std::vector<PartedGemm> products;
  for (size_t i = 0; i < chosen.size(); ++i) {
    x.push_back(random_floats(rows[i] * k, static_cast<uint32_t>(10 + i)));
    y.emplace_back(static_cast<size_t>(rows[i] * stride), 0.0f);
    products.push_back({matrix(x[i], rows[i], k), chosen[i].parts(),
                        matrix(y[i], rows[i], stride).columns(0, std::ssize(chosen[i].ids()))});
  }
  gemm_parted(context, w, products);
  for (size_t i = 0; i < chosen.size(); ++i) {
    std::vector<float> whole(static_cast<size_t>(rows[i] * n));
    gemm(context, matrix(x[i], rows[i], k), w, {.bias = bias.data()}, matrix(whole, rows[i], n));
    for (int64_t row = 0; row < rows[i]; ++row) {
      for (int64_t j = 0; j < stride; ++j) {
        const float found = y[i][static_cast<size_t>(row * stride + j)];
        const bool is_there = j < std::ssize(chosen[i].ids());
        const float expected =
            is_there ? whole[static_cast<size_t>(row * n + chosen[i].ids()[static_cast<size_t>(j)])] : 0;
        ASSERT_EQ(found, expected) << "product " << i << ", row " << row << ", column " << j;
      }
    }
  }
}

TEST_P(GemmTest, ChosenColumnsHaveTheWholeProductsBits) {
  const int64_t n = 3 * kPartColumns + 37;
  ThreadPool pool(3);
  Arena arena(size_t{16} << 20);
  for (const PackedFormat format : kFormats) {
    if (format.has_wide_inputs()) continue;  // not for those
    for (const int64_t k : {7, 70, 300}) {
      SCOPED_TRACE(name_of(format) + " k " + std::to_string(k));
      CpuDevice device{pool, GetParam()};
      Context context{.device = device, .arena = arena};
      const PackedMatrix w = pack(random_floats(n * k, 2), n, k, format);
      expect_parts_of_the_whole(context, w, std::vector<int64_t>{1, 1, 1});
      expect_parts_of_the_whole(context, w, std::vector<int64_t>{4, 1, 27});
      expect_parts_of_the_whole(context, w, std::vector<int64_t>{32, 40, 9});
    }
  }
  EXPECT_EQ(arena.num_overflows(), 0);
}

void expect_dry_run_to_agree(Isa isa, PackedFormat format, int64_t m) {
  ThreadPool pool(2);
  const PackedMatrix w = pack(random_floats(64 * 50, 1), 64, 50, format);
  Arena measuring = Arena::measuring();
  OpCounters counters;
  CpuDevice dry_device{pool, isa};
  Context dry{.device = dry_device, .arena = measuring, .dry_run = true, .counters = &counters};
  TensorView x = measuring.tensor(DType::kFloat32, {m, 50});
  TensorView y = measuring.tensor(DType::kFloat32, {m, 64});
  gemm(dry, x, w, {}, y);
  EXPECT_EQ(counters.num_matmuls, 0);

  Arena arena(size_t{4} << 20);
  CpuDevice device{pool, isa};
  Context context{.device = device, .arena = arena, .counters = &counters};
  x = arena.tensor(DType::kFloat32, {m, 50});
  y = arena.tensor(DType::kFloat32, {m, 64});
  // Two entries dwarf the others: with wide inputs every row takes the most memory.
  for (int64_t i = 0; i < m * 50; ++i) x.f32()[i] = i % 50 == 0 ? 1.0f : i % 50 == 1 ? -1.0f : 0.001f;
  gemm(context, x, w, {}, y);
  EXPECT_EQ(counters.num_matmuls, m > 0 ? 1 : 0);
  EXPECT_EQ(arena.high_water_bytes(), measuring.high_water_bytes());
}

TEST_P(GemmTest, ADryRunAsksForTheSameMemoryAndTouchesNothing) {
  for (const PackedFormat format : kFormats) {
    for (const int64_t m : {0, 1, 5, 60}) expect_dry_run_to_agree(GetParam(), format, m);
  }
}

TEST(PackedMatrixTest, GivesRowsBackAsTheyWereSet) {
  constexpr int64_t kOutputs = 70, kInputs = 9;
  const std::vector<float> w = random_floats(kOutputs * kInputs, 1);
  const PackedMatrix packed = pack(w, kOutputs, kInputs);
  EXPECT_EQ(packed.num_panels(), 3);
  EXPECT_EQ(packed.bytes(), size_t{3 * 32 * kInputs * 4});
  for (int64_t i = 0; i < kOutputs; ++i) {
    std::vector<float> row(kInputs);
    packed.get_row(i, row.data());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), w.begin() + i * kInputs));
  }
  for (int64_t t = 0; t < kInputs; ++t) {
    for (int64_t c = kOutputs % 32; c < 32; ++c)
      EXPECT_EQ(reinterpret_cast<const float*>(packed.panels())[(2 * kInputs + t) * 32 + c], 0) << "past n";
  }
}

TEST(PackedMatrixTest, RoundsEachWeightToItsStorage) {
  const std::vector<float> w = random_floats(64 * 70, 8, 0.02f);
  for (const PackedFormat format : kFormats) {
    const PackedMatrix packed = pack(w, 64, 70, format);
    const std::vector<float> back = rows_of(packed);
    for (int64_t row = 0; row < 64; ++row) {
      float largest = 0;
      for (int64_t t = 0; t < 70; ++t) largest = std::max(largest, std::abs(w[static_cast<size_t>(row * 70 + t)]));
      for (int64_t t = 0; t < 70; ++t) {
        const auto i = static_cast<size_t>(row * 70 + t);
        // Half a unit in the last place: of 8 and 11 bits, or of an int8 step (and its float rounding).
        const double half = format.weights == kFloat32Format    ? 0
                            : format.weights == kBFloat16Format ? std::abs(w[i]) * 0x1p-8
                            : format.weights == kFloat16Format  ? std::abs(w[i]) * 0x1p-11 + 0x1p-25
                                                                : largest / 254 * 1.00001;
        EXPECT_NEAR(back[i], w[i], half) << name_of(format) << " row " << row << " place " << t;
      }
    }
  }
}

TEST(PackedMatrixTest, Int8TakesAQuarterOfTheBytes) {
  const std::vector<float> w = random_floats(256 * 512, 8);
  const double whole = static_cast<double>(pack(w, 256, 512).bytes());
  EXPECT_NEAR(static_cast<double>(pack(w, 256, 512, {kBFloat16Format}).bytes()) / whole, 0.5, 0.001);
  EXPECT_NEAR(static_cast<double>(pack(w, 256, 512, {kInt8Format}).bytes()) / whole, 0.25, 0.005);
}

// The same integers come of every level, so that an answer does not depend on the processor more than float32's does.
TEST_P(GemmTest, Int8HasTheGenericLevelsBits) {
  const int64_t m = 30, n = 70, k = 200;
  std::vector<float> x = random_floats(m * k, 1), y(static_cast<size_t>(m * n)), generic(y.size());
  const PackedMatrix w = pack(random_floats(n * k, 2), n, k, {kInt8Format});
  ThreadPool pool(2);
  Arena arena(size_t{1} << 20);
  CpuDevice level_device{pool, GetParam()};
  CpuDevice plain_device{pool};
  Context level{.device = level_device, .arena = arena}, plain{.device = plain_device, .arena = arena};
  gemm(level, matrix(x, m, k), w, {}, matrix(y, m, n));
  gemm(plain, matrix(x, m, k), w, {}, matrix(generic, m, n));
  EXPECT_EQ(std::memcmp(y.data(), generic.data(), y.size() * sizeof(float)), 0);
}

// Rows that 8 bits suit have the bits of a format without wide inputs, and of others the second rounding takes away
// nearly all that the first leaves.
TEST_P(GemmTest, WideInputsOfOutliersHelpTheRowsThatNeedThem) {
  const int64_t m = 30, n = 70, k = 200;
  const std::vector<float> weights = random_floats(n * k, 2);
  const PackedMatrix narrow = pack(weights, n, k, {kInt8Format}),
                     wide = pack(weights, n, k, {kInt8Format, InputRounding::kOutliers});
  std::vector<float> x = rows_with_outliers(m, k, 1), w = rows_of(wide);
  std::vector<float> with(static_cast<size_t>(m * n)), without(with.size()), exact(with.size());
  ThreadPool pool(2);
  Arena arena(size_t{1} << 20);
  CpuDevice device{pool, GetParam()};
  Context context{.device = device, .arena = arena};
  gemm(context, matrix(x, m, k), wide, {}, matrix(with, m, n));
  gemm(context, matrix(x, m, k), narrow, {}, matrix(without, m, n));
  gemm_reference(matrix(x, m, k), matrix(w, n, k), {}, matrix(exact, m, n));
  for (int64_t row = 0; row < m; ++row) {
    const auto at = [&](const std::vector<float>& y) {
      return std::span(y).subspan(static_cast<size_t>(row * n), static_cast<size_t>(n));
    };
    const auto error = [&](const std::vector<float>& y) {
      double sum = 0;
      for (size_t j = 0; j < static_cast<size_t>(n); ++j) sum += std::pow(at(y)[j] - at(exact)[j], 2);
      return std::sqrt(sum);
    };
    if (row % 2 == 1) {
      ASSERT_TRUE(std::equal(at(with).begin(), at(with).end(), at(without).begin())) << "row " << row;
    } else {
      ASSERT_LT(error(with), 0.02 * error(without)) << "row " << row;
    }
  }
}

// What is counted as lost: the entries that are not 0, so that ReLU's zeros condemn no row.
TEST_P(GemmTest, RoughRowsAreThoseThatLoseMoreThanAHundredth) {
  const OpKernels& kernels = op_kernels(GetParam());
  const int64_t k = 300;
  const auto is_rough = [&](int64_t count, float others) {
    std::vector<float> x(static_cast<size_t>(k), 0.0f);
    std::fill_n(x.begin(), count, others);
    x[static_cast<size_t>(k - 1)] = 1;
    bool rough = false;
    kernels.find_rough({.x = x.data(), .x_stride = k, .m = 1, .k = k, .leaf_k = k}, nullptr, 0, 1, &rough);
    // A step is 1 / 255 and moves an entry by 1 / 883.
    const double lost =
        std::sqrt((static_cast<double>(count) + 1) / (static_cast<double>(count) * others * others + 1)) / 883;
    EXPECT_EQ(rough, lost > 0.01) << count << " of " << others;
    return rough;
  };
  EXPECT_FALSE(is_rough(0, 0));       // one entry alone is met exactly
  EXPECT_FALSE(is_rough(60, 0.01f));  // among zeros
  EXPECT_TRUE(is_rough(100, 0.01f));
  EXPECT_FALSE(is_rough(299, 0.2f));
  EXPECT_TRUE(is_rough(299, 0.05f));
  const std::vector<float> zeros(static_cast<size_t>(k), 0.0f), huge(static_cast<size_t>(k), 1e30f);
  bool rough[] = {true, false};
  kernels.find_rough({.x = zeros.data(), .x_stride = k, .m = 1, .k = k, .leaf_k = k}, nullptr, 0, 1, &rough[0]);
  kernels.find_rough({.x = huge.data(), .x_stride = k, .m = 1, .k = k, .leaf_k = k}, nullptr, 0, 1, &rough[1]);
  EXPECT_FALSE(rough[0]);
  EXPECT_TRUE(rough[1]);  // squares that are not finite tell nothing
}

// The largest sums that there are: nothing saturates or overflows.
TEST_P(GemmTest, Int8AddsExtremesExactly) {
  const int64_t m = 3, n = 33, k = 4096;
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> x(static_cast<size_t>(m * k), 2.0f), y(static_cast<size_t>(m * n));
    const PackedMatrix w = pack(std::vector<float>(static_cast<size_t>(n * k), sign * 3), n, k, {kInt8Format});
    ThreadPool pool(1);
    Arena arena(size_t{1} << 20);
    CpuDevice device{pool, GetParam()};
    Context context{.device = device, .arena = arena};
    gemm(context, matrix(x, m, k), w, {}, matrix(y, m, n));
    for (const float value : y) ASSERT_NEAR(value, sign * 6.0f * static_cast<float>(k), 0.01);
  }
}

TEST_P(GemmTest, WhatIsNotANumberShows) {
  const int64_t m = 3, n = 40, k = 70;
  for (const PackedFormat format : kFormats) {
    for (const float strange : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      std::vector<float> x = random_floats(m * k, 1), y(static_cast<size_t>(m * n));
      x[static_cast<size_t>(k + 69)] = strange;
      const PackedMatrix w = pack(random_floats(n * k, 2), n, k, format);
      ThreadPool pool(1);
      Arena arena(size_t{1} << 20);
      CpuDevice device{pool, GetParam()};
      Context context{.device = device, .arena = arena};
      gemm(context, matrix(x, m, k), w, {}, matrix(y, m, n));
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_TRUE(std::isfinite(y[static_cast<size_t>(j)])) << name_of(format);
        ASSERT_FALSE(std::isfinite(y[static_cast<size_t>(n + j)])) << name_of(format) << " " << strange;
        ASSERT_TRUE(std::isfinite(y[static_cast<size_t>(2 * n + j)])) << name_of(format);
      }
    }
  }
  std::vector<float> weights = random_floats(n * k, 2), x = random_floats(k, 1), y(static_cast<size_t>(n));
  weights[5] = std::nanf("");
  ThreadPool pool(1);
  Arena arena(size_t{1} << 20);
  CpuDevice device{pool, GetParam()};
  Context context{.device = device, .arena = arena};
  for (const PackedFormat format : kFormats) {
    gemm(context, matrix(x, 1, k), pack(weights, n, k, format), {}, matrix(y, 1, n));
    EXPECT_TRUE(std::isnan(y[0])) << name_of(format);
    EXPECT_TRUE(std::isfinite(y[1])) << name_of(format);
  }
}

class ActivationTest : public GemmTest {};

INSTANTIATE_TEST_SUITE_P(Levels, ActivationTest, ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

TEST_P(ActivationTest, VectorsAgreeWithTheDefinitionEverywhere) {
  // Absolute near 0, relative where values are large.
  const OpKernels& kernels = op_kernels(GetParam());
  std::vector<float> x;
  for (float v = -30; v <= 30; v += 0.00037f) x.push_back(v);
  for (const float v : {-1000.0f, -89.0f, -88.0f, -87.4f, 0.0f, 89.0f, 1000.0f, 1e-20f, -1e-20f}) x.push_back(v);
  std::vector<float> y(x.size());
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kSilu, Activation::kTanh, Activation::kQuickGelu}) {
    kernels.activate(activation, x.data(), static_cast<int64_t>(x.size()), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const float expected = activate(activation, x[i]);
      ASSERT_NEAR(y[i], expected, std::max(5e-7, 3e-7 * std::abs(expected)))
          << "activation " << static_cast<int>(activation) << " of " << x[i];
    }
    const float nan = std::nanf("");
    float out = 0;
    kernels.activate(activation, &nan, 1, &out);
    EXPECT_TRUE(std::isnan(out)) << "NaN must show";
  }
}

TEST(ActivationDefinitionTest, MatchesPyTorch) {
  // torch.nn.functional.{gelu, gelu(approximate="tanh"), silu} and x * sigmoid(1.702 x) in float64.
  EXPECT_NEAR(activate(Activation::kGelu, 1.0f), 0.8413447460685429, 1e-7);
  EXPECT_NEAR(activate(Activation::kGelu, -3.0f), -0.0040496940948834835, 1e-9);
  EXPECT_NEAR(activate(Activation::kGeluTanh, 1.0f), 0.8411919906082768, 1e-7);
  EXPECT_NEAR(activate(Activation::kGeluTanh, -3.0f), -0.0036373920817729943, 1e-9);
  EXPECT_NEAR(activate(Activation::kSilu, -2.0f), -0.2384058440442351, 1e-7);
  EXPECT_NEAR(activate(Activation::kTanh, -0.7f), -0.6043677771171636, 1e-7);
  EXPECT_NEAR(activate(Activation::kQuickGelu, -1.3f), -0.1282121066168159, 1e-7);
}

// Quiet audio goes through it and is normalised afterwards: what is small must be right in itself.
TEST_P(ActivationTest, TanhIsRightRelativelyToo) {
  const OpKernels& kernels = op_kernels(GetParam());
  std::vector<float> x;
  for (double v = 1e-30; v < 20; v *= 1.0007) x.insert(x.end(), {static_cast<float>(v), static_cast<float>(-v)});
  std::vector<float> y(x.size());
  kernels.activate(Activation::kTanh, x.data(), static_cast<int64_t>(x.size()), y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = std::tanh(static_cast<double>(x[i]));
    ASSERT_NEAR(y[i], expected, 3e-7 * std::abs(expected)) << x[i];
  }
}

}  // namespace
}  // namespace transept
