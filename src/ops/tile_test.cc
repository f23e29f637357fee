// Products on tiles, proven where no processor has them: the kernels of AMX run on tiles in software
// (tile_software_testing.h), behind plain vectors everywhere and behind AVX-512's where that is present; where AMX is,
// it must agree.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "base/sanitized_testing.h"
#include "ops/cpu_device.h"
#include "ops/gemm.h"
#include "ops/kernels.h"
#include "ops/ops_testing.h"
#include "ops/select_kernels.h"
#include "ops/tile_kernel.h"
#include "ops/tile_software_testing.h"
#include "ops/vec_generic.h"

namespace transept {

#if defined(__x86_64__)
namespace software_amx {
extern const TileGemmKernels kTileGemmKernels;  // tile_test_avx512_vnni.cc
}
#endif

namespace {

using test_util::matrix;
using test_util::pack;
using test_util::random_floats;
using test_util::rows_with_outliers;

struct PlainTileDot {
  typedef uint8_t Input;
  static constexpr bool kRaisesInputs = true;
  static void store_inputs(Input* to, int64_t /*step*/, generic::Vec::Reg rounded, int32_t zero) {
    for (int i = 0; i < generic::Vec::kLanes; ++i) to[i] = static_cast<Input>(static_cast<int32_t>(rounded[i]) + zero);
  }
  template <class V>
  static typename V::Reg corrected(const int32_t* sums, const int32_t* weight_sums, int32_t zero) {
    int32_t lowered[V::kLanes];
    for (int i = 0; i < V::kLanes; ++i) lowered[i] = sums[i] - weight_sums[i] * zero;
    return V::load_int32(lowered);
  }
};

constexpr TileGemmKernels kPlainTiles =
    make_tile_gemm_kernels<generic::Vec, PlainTileDot, SoftwareTiles<generic::Vec>>();

constexpr PackedFormat kInt8Formats[] = {
    {kInt8Format}, {kInt8Format, InputRounding::kWide}, {kInt8Format, InputRounding::kOutliers}};
constexpr PackedFormat kRoundedInputs = {kBFloat16Format, InputRounding::kBFloat16};
constexpr PackedFormat kFormats[] = {kInt8Formats[0], kInt8Formats[1], kInt8Formats[2], kRoundedInputs};

// A level's table with tiles that serve every number of rows.
class TileTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
    tiles_ = kPlainTiles;
#if defined(__x86_64__)
    if (GetParam() == Isa::kAvx512Vnni) tiles_ = software_amx::kTileGemmKernels;
    if (GetParam() == Isa::kAmx) tiles_ = amx::kTileGemmKernels;
#endif
    tiles_.int8_vector_rows = 0;
    with_tiles_ = op_kernels(GetParam());
    with_tiles_.tiles = &tiles_;
    vectors_ = with_tiles_;
    vectors_.tiles = nullptr;
  }

  // y = gelu(x w^T + bias) + y, of rows with gaps.
  std::vector<float> product(const OpKernels& kernels, std::vector<float>& x, int64_t m, const PackedMatrix& w,
                             int threads) {
    ThreadPool pool(threads);
    Arena arena(size_t{16} << 20);
    CpuDevice device{pool, GetParam()};
    Context context{.device = device, .arena = arena};
    std::vector<float> bias = random_floats(w.n(), 3), y = random_floats(m * (w.n() + 3), 4);
    const TensorView y_view = matrix(y, m, w.n() + 3).columns(0, w.n());
    gemm_with(kernels, context, matrix(x, m, w.k() + 5).columns(0, w.k()), w,
              {.bias = bias.data(), .activation = Activation::kGelu, .residual = y_view}, y_view);
    EXPECT_EQ(arena.num_overflows(), 0);
    return y;
  }

  TileGemmKernels tiles_ = {};
  OpKernels with_tiles_ = {}, vectors_ = {};
};

INSTANTIATE_TEST_SUITE_P(Levels, TileTest, ::testing::Values(Isa::kGeneric, Isa::kAvx512Vnni, Isa::kAmx),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

// Of every shape of stripes: one strip, two unequal ones, a last one that begins earlier.
TEST_P(TileTest, Int8HasTheVectorsBits) {
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {33, 64}, {70, 65}, {129, 130}}) {
    for (const PackedFormat format : kInt8Formats) {
      const PackedMatrix w = pack(random_floats(n * k, 2), n, k, format);
      for (const int64_t m : {1, 2, 3, 7, 8, 9, 15, 16, 17, 18, 23, 24, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65, 97}) {
        std::vector<float> x = rows_with_outliers(m, k + 5, static_cast<uint32_t>(m));
        for (const int threads : {1, 3}) {
          if (kSanitized && threads == 1) continue;
          ASSERT_EQ(product(with_tiles_, x, m, w, threads), product(vectors_, x, m, w, threads))
              << "m " << m << " n " << n << " k " << k << " wide " << format.has_wide_inputs() << " threads "
              << threads;
        }
      }
    }
  }
}

TEST_P(TileTest, Int8HasTheVectorsBitsWhereRowsFallIntoBlocks) {
  constexpr int64_t kInputs = 3000, kOutputs = 70, kRows = 700;  // blocks of 349 rows
  std::vector<float> x = random_floats(kRows * (kInputs + 5), 1);
  const PackedMatrix w = pack(random_floats(kOutputs * kInputs, 2), kOutputs, kInputs, {kInt8Format});
  ASSERT_GT(kRows * w.depth(), tiles_.int8.block_bytes);
  EXPECT_EQ(product(with_tiles_, x, kRows, w, 2), product(vectors_, x, kRows, w, 2));
}

TEST_P(TileTest, Int8AddsExtremesExactly) {
  constexpr int64_t kInputs = 4096, kRows = 17, kOutputs = 33;
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> x(static_cast<size_t>(kRows * (kInputs + 5)), 2.0f);
    const PackedMatrix w =
        pack(std::vector<float>(static_cast<size_t>(kOutputs * kInputs), 3 * sign), kOutputs, kInputs, {kInt8Format});
    EXPECT_EQ(product(with_tiles_, x, kRows, w, 1), product(vectors_, x, kRows, w, 1));
  }
}

// x and w in bfloat16, summed as the manual says: of every 32 inputs the even and the odd ones apart.
float sum_as_defined(const float* x, const float* w, int64_t k) {
  float sum = 0;
  for (int64_t begin = 0; begin < k; begin += 32) {
    float parts[2] = {};
    for (int64_t t = begin; t < std::min(begin + 32, k); ++t) {
      const float rounded = bfloat16_to_float(float_to_bfloat16(x[t]));
      parts[t % 2] = std::fma(rounded, w[t], parts[t % 2]);
    }
    sum += parts[0] + parts[1];
  }
  return sum;
}

TEST_P(TileTest, BFloat16SumsAsDefined) {
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {33, 32}, {70, 33}, {65, 131}}) {
    const PackedMatrix w = pack(random_floats(n * k, 2), n, k, kRoundedInputs);
    std::vector<float> row(static_cast<size_t>(k));
    for (const int64_t m : {1, 5, 16, 17, 31, 32, 33, 50, 70}) {
      std::vector<float> x = random_floats(m * k, 1), y(static_cast<size_t>(m * n));
      ThreadPool pool(2);
      Arena arena(size_t{4} << 20);
      CpuDevice device{pool, GetParam()};
      Context context{.device = device, .arena = arena};
      gemm_with(with_tiles_, context, matrix(x, m, k), w, {}, matrix(y, m, n));
      for (int64_t j = 0; j < n; ++j) {
        w.get_row(j, row.data());
        for (int64_t i = 0; i < m; ++i) {
          ASSERT_EQ(y[static_cast<size_t>(i * n + j)], sum_as_defined(x.data() + i * k, row.data(), k))
              << "m " << m << " n " << n << " k " << k << " at " << i << ", " << j;
        }
      }
    }
  }
}

// The tree over leaves (ops/gemm.h) of whole tiles: eight of one, of two, and four of three steps of 32 inputs.
TEST_P(TileTest, BFloat16SumsInLeavesAsDefined) {
  constexpr int64_t kOutputs = 65;
  for (const auto& [k, leaves] : {std::pair<int64_t, int32_t>{256, 8}, {512, 8}, {384, 4}, {96, 1}}) {
    const PackedMatrix w = pack(random_floats(kOutputs * k, 2), kOutputs, k, kRoundedInputs);
    std::vector<float> row(static_cast<size_t>(k));
    for (const int64_t m : {1, 15, 17, 32, 33, 70}) {
      std::vector<float> x = random_floats(m * k, 1), y(static_cast<size_t>(m * kOutputs));
      ThreadPool pool(2);
      Arena arena(size_t{4} << 20);
      CpuDevice device{pool, GetParam()};
      Context context{.device = device, .arena = arena};
      gemm_with(with_tiles_, context, {matrix(x, m, k), nullptr, leaves}, w, {}, matrix(y, m, kOutputs));
      for (int64_t i = 0; i < m * kOutputs; ++i) {
        w.get_row(i % kOutputs, row.data());
        std::vector<float> sums;
        for (int64_t leaf = 0; leaf < leaves; ++leaf) {
          const int64_t begin = leaf * k / leaves;
          sums.push_back(sum_as_defined(x.data() + i / kOutputs * k + begin, row.data() + begin, k / leaves));
        }
        for (size_t step = 1; step < sums.size(); step *= 2) {
          for (size_t j = 0; j < sums.size(); j += 2 * step) sums[j] += sums[j + step];
        }
        ASSERT_EQ(y[static_cast<size_t>(i)], sums[0]) << "m " << m << " k " << k << " at " << i;
      }
    }
  }
}

TEST_P(TileTest, BFloat16InputsAreOnlyRoundedWhereThereAreTiles) {
  std::vector<float> x = random_floats(4 * 105, 1);
  const std::vector<float> weights = random_floats(40 * 100, 2);
  const PackedMatrix asked = pack(weights, 40, 100, kRoundedInputs), stored = pack(weights, 40, 100, {kBFloat16Format});
  EXPECT_NE(product(with_tiles_, x, 4, asked, 1), product(vectors_, x, 4, asked, 1));
  EXPECT_EQ(product(with_tiles_, x, 4, stored, 1), product(vectors_, x, 4, stored, 1));
  EXPECT_EQ(product(vectors_, x, 4, asked, 1), product(vectors_, x, 4, stored, 1));
}

// Parts of one matrix beside each other have the bits of the whole one, whatever tiles their rows fall into.
TEST_P(TileTest, PartsHaveTheWholeProductsBits) {
  constexpr int64_t kInputs = 130, kOutputs = kPartColumns + 9;
  std::vector<int32_t> ids(static_cast<size_t>(kOutputs));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  for (const PackedFormat format : {kInt8Formats[0], kRoundedInputs}) {
    const PackedMatrix w = pack(random_floats(kOutputs * kInputs, 2), kOutputs, kInputs, format);
    PackedMatrix first(kPartColumns, kInputs, format), second(kPartColumns, kInputs, format);
    first.copy_rows(w, std::span(ids).first(static_cast<size_t>(kPartColumns)));
    second.copy_rows(w, std::span(ids).subspan(static_cast<size_t>(kPartColumns)));
    const GemmPart parts[] = {{&first}, {&second}};
    ThreadPool pool(3);
    Arena arena(size_t{4} << 20);
    CpuDevice device{pool, GetParam()};
    Context context{.device = device, .arena = arena};
    for (const int64_t m : {1, 5, 17, 33}) {
      std::vector<float> x = random_floats(m * kInputs, 1), z = random_floats(kInputs, 4);
      std::vector<float> y(static_cast<size_t>(m * kOutputs)), of_z(static_cast<size_t>(kOutputs)), whole(y);
      const PartedGemm products[] = {{matrix(x, m, kInputs), parts, matrix(y, m, kOutputs)},
                                     {matrix(z, 1, kInputs), parts, matrix(of_z, 1, kOutputs)}};
      gemm_parted_with(with_tiles_, context, w, products);
      gemm_with(with_tiles_, context, matrix(x, m, kInputs), w, {}, matrix(whole, m, kOutputs));
      ASSERT_EQ(y, whole) << "m " << m;
      whole.resize(of_z.size());
      gemm_with(with_tiles_, context, matrix(z, 1, kInputs), w, {}, matrix(whole, 1, kOutputs));
      ASSERT_EQ(of_z, whole) << "beside m " << m;
    }
  }
}

TEST_P(TileTest, FewInt8RowsStayWithVectors) {
  // Seen by giving the tiles' rounding to a table that has no tiles for int8: rows past the limit would call it.
  tiles_.int8_vector_rows = kInt8VectorRows;
  tiles_.int8.quantize = nullptr;
  std::vector<float> x = random_floats(kInt8VectorRows * 105, 1);
  const std::vector<float> weights = random_floats(40 * 100, 2);
  const PackedMatrix narrow = pack(weights, 40, 100, {kInt8Format}),
                     wide = pack(weights, 40, 100, {kInt8Format, InputRounding::kWide});
  EXPECT_EQ(product(with_tiles_, x, kInt8VectorRows, narrow, 1), product(vectors_, x, kInt8VectorRows, narrow, 1));
  EXPECT_EQ(product(with_tiles_, x, kInt8VectorRows / 2, wide, 1), product(vectors_, x, kInt8VectorRows / 2, wide, 1));
}

TEST_P(TileTest, RowsHaveTheSameBitsAloneAndInAnyBatch) {
  constexpr int64_t kMaxRows = 110, kOutputs = 70, kInputs = 100;
  for (const PackedFormat format : kFormats) {
    const PackedMatrix w = pack(random_floats(kOutputs * kInputs, 6), kOutputs, kInputs, format);
    std::vector<float> x = rows_with_outliers(kMaxRows, kInputs, 5);
    const auto run = [&](int64_t begin, int64_t end, int threads) {
      ThreadPool pool(threads);
      Arena arena(size_t{4} << 20);
      CpuDevice device{pool, GetParam()};
      Context context{.device = device, .arena = arena};
      std::vector<float> y(static_cast<size_t>((end - begin) * kOutputs));
      gemm_with(with_tiles_, context, matrix(x, kMaxRows, kInputs).rows(begin, end), w, {},
                matrix(y, end - begin, kOutputs));
      return y;
    };
    std::vector<float> alone;
    for (int64_t i = 0; i < kMaxRows; ++i) {
      const std::vector<float> row = run(i, i + 1, 1);
      alone.insert(alone.end(), row.begin(), row.end());
    }
    for (int64_t m = 2; m <= kMaxRows; m += 3) {
      const std::vector<float> batch = run(0, m, 1 + static_cast<int>(m % 3));
      ASSERT_TRUE(std::equal(batch.begin(), batch.end(), alone.begin()))
          << weight_format_name(format.weights) << " m " << m;
    }
  }
}

TEST_P(TileTest, PiecesOfColumnsHaveTheWholesBits) {
  constexpr int64_t kOutputs = kPieceColumns + 40, kInputs = 40, kRows = 37;
  for (const PackedFormat format : {kInt8Formats[0], kRoundedInputs}) {
    const PackedMatrix w = pack(random_floats(kOutputs * kInputs, 6), kOutputs, kInputs, format);
    std::vector<float> x = random_floats(kRows * kInputs, 5), y(static_cast<size_t>(kRows * kOutputs)), whole(y.size());
    ThreadPool pool(2);
    Arena arena(size_t{4} << 20);
    CpuDevice device{pool, GetParam()};
    Context context{.device = device, .arena = arena};
    gemm_with(with_tiles_, context, matrix(x, kRows, kInputs), w, {}, matrix(whole, kRows, kOutputs));
    gemm_by_columns_with(with_tiles_, context, matrix(x, kRows, kInputs), w, nullptr, matrix(y, kRows, kOutputs),
                         [](const ColumnPiece&) {});
    EXPECT_EQ(y, whole) << weight_format_name(format.weights);
  }
}

TEST_P(TileTest, ADryRunAsksForTheSameMemory) {
  ThreadPool pool(2);
  for (const PackedFormat format : kFormats) {
    const PackedMatrix w = pack(random_floats(64 * 50, 1), 64, 50, format);
    for (const int64_t m : {0, 1, 20, 100}) {
      std::vector<float> x(static_cast<size_t>(m * 50), 0.001f), y(static_cast<size_t>(m * 64));
      for (size_t i = 0; i < x.size(); i += 50) x[i] = 1, x[i + 1] = -1;  // wide inputs: in the most memory
      Arena measuring = Arena::measuring(), arena(size_t{4} << 20);
      CpuDevice dry_device{pool, GetParam()};
      Context dry{.device = dry_device, .arena = measuring, .dry_run = true};
      CpuDevice device{pool, GetParam()};
      Context context{.device = device, .arena = arena};
      gemm_with(with_tiles_, dry, matrix(x, m, 50), w, {}, matrix(y, m, 64));
      gemm_with(with_tiles_, context, matrix(x, m, 50), w, {}, matrix(y, m, 64));
      EXPECT_EQ(arena.high_water_bytes(), measuring.high_water_bytes())
          << weight_format_name(format.weights) << " m " << m;
    }
  }
}

TEST_P(TileTest, WhatIsNotANumberShowsInItsRowAlone) {
  constexpr int64_t kRows = 33, kOutputs = 40, kInputs = 70, kStrange = 30;  // of rows that are computed twice
  for (const PackedFormat format : kFormats) {
    const PackedMatrix w = pack(random_floats(kOutputs * kInputs, 2), kOutputs, kInputs, format);
    for (const float strange : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      std::vector<float> x = random_floats(kRows * (kInputs + 5), 1);
      x[static_cast<size_t>(kStrange * (kInputs + 5) + 69)] = strange;
      const std::vector<float> y = product(with_tiles_, x, kRows, w, 1);
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t j = 0; j < kOutputs; ++j)
          ASSERT_EQ(std::isfinite(y[static_cast<size_t>(i * (kOutputs + 3) + j)]), i != kStrange)
              << weight_format_name(format.weights) << " " << strange << " at " << i << ", " << j;
      }
    }
  }
}

TEST_P(TileTest, InputsAreRoundedToTheNearestBFloat16) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFF; bits += 0x7FF1) {  // of every exponent, and what rounding is about:
    for (const uint32_t low : {0x0000u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu, static_cast<uint32_t>(bits & 0xFFFF)})
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits & 0xFFFF0000) | low));
  }
  const auto k = static_cast<int64_t>(x.size()), depth = (k + 31) / 32 * 32;
  std::vector<uint16_t> rounded(static_cast<size_t>(depth), 7);
  const RoundedJob job = {.gemm = {.x = x.data(), .m = 1, .k = k, .depth = depth}};
  tiles_.bfloat16.quantize(job, 0, 1, rounded.data(), nullptr, nullptr);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(rounded[i], float_to_bfloat16(x[i])) << x[i];
  for (size_t i = x.size(); i < rounded.size(); ++i) ASSERT_EQ(rounded[i], 0);
}

// The one thing that only AMX itself can show. Integers are the software's to the bit; of bfloat16 the manual leaves a
// processor no freedom either, but nobody has seen one do it: float32's rounding of 330 products is let pass.
TEST(TileHardwareTest, AmxAgreesWithTheSoftware) {
#if defined(__x86_64__)
  if (detect_isa() < Isa::kAmx) GTEST_SKIP() << "amx is not present on this processor";
  OpKernels software = op_kernels(Isa::kAmx);
  software.tiles = &software_amx::kTileGemmKernels;
  ThreadPool pool(3);
  Arena arena(size_t{16} << 20);
  CpuDevice device{pool, Isa::kAmx};
  Context context{.device = device, .arena = arena};
  for (const PackedFormat format : kFormats) {
    const PackedMatrix w = pack(random_floats(100 * 330, 1), 100, 330, format);
    for (const int64_t m : {1, 9, 16, 17, 32, 45, 130}) {
      std::vector<float> x = rows_with_outliers(m, 330, 2), y(static_cast<size_t>(m * 100)), expected(y.size());
      gemm_with(op_kernels(Isa::kAmx), context, matrix(x, m, 330), w, {}, matrix(y, m, 100));
      gemm_with(software, context, matrix(x, m, 330), w, {}, matrix(expected, m, 100));
      const float most = format.weights == kInt8Format ? 0.0f : 1e-4f;
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_NEAR(y[i], expected[i], most) << weight_format_name(format.weights) << " m " << m;
      }
    }
  }
#endif
}

// --- the software's own truth, on numbers worked out by hand

template <int kRows>
TileConfig config_of() {
  TileConfig config = {};
  config.palette = 1;
  for (int i = 0; i < 8; ++i) config.rows[i] = kRows, config.row_bytes[i] = 4 * kRows;
  return config;
}

TEST(SoftwareTilesTest, BytesAreUnsignedTimesSigned) {
  SoftwareTiles<generic::Vec> tiles(config_of<2>());
  const uint8_t a[2][8] = {{255, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 0, 0, 0, 0, 0, 200}};
  const int8_t b[2][8] = {{-128, 1, 1, 1, 127, 0, 0, 0}, {2, 2, 2, 2, 0, 0, 0, -1}};
  int32_t sums[2][2] = {{1000, 0}, {0, 0}};
  tiles.load<0>(sums, 8);
  tiles.load<4>(a, 8);
  tiles.load<6>(b, 8);
  tiles.dot_u8s8<0, 4, 6>();
  tiles.store<0>(sums, 8);
  EXPECT_EQ(sums[0][0], 1000 - 255 * 128 + 1 + 2 + 3 + 2 * (4 + 5 + 6 + 7));
  EXPECT_EQ(sums[0][1], 255 * 127 - 7);
  EXPECT_EQ(sums[1][0], 400);
  EXPECT_EQ(sums[1][1], -200);
}

TEST(SoftwareTilesTest, BytesAreSignedTimesUnsigned) {
  SoftwareTiles<generic::Vec> tiles(config_of<2>());
  const int8_t a[2][8] = {{-128, 1, 2, 3, 4, 5, 6, 7}, {127, 0, 0, 0, 0, 0, 0, -100}};
  const uint8_t b[2][8] = {{255, 1, 1, 1, 128, 0, 0, 0}, {2, 2, 2, 2, 0, 0, 0, 200}};
  int32_t sums[2][2] = {{1000, 0}, {0, -1}};
  tiles.load<0>(sums, 8);
  tiles.load<4>(a, 8);
  tiles.load<6>(b, 8);
  tiles.dot_s8u8<0, 4, 6>();
  tiles.store<0>(sums, 8);
  EXPECT_EQ(sums[0][0], 1000 - 128 * 255 + 1 + 2 + 3 + 2 * (4 + 5 + 6 + 7));
  EXPECT_EQ(sums[0][1], -128 * 128 + 7 * 200);
  EXPECT_EQ(sums[1][0], 127 * 255 - 100 * 2);
  EXPECT_EQ(sums[1][1], -1 + 127 * 128 - 100 * 200);
}

TEST(SoftwareTilesTest, BFloat16AddsEvenAndOddApartAndDropsSubnormals) {
  SoftwareTiles<generic::Vec> tiles(config_of<2>());
  const auto half = [](float x) { return float_to_bfloat16(x); };
  const float tiny = 0x1p-130f;
  // In order 2^24 + 1 - 2^24 would lose the 1, but even inputs meet even ones first.
  const uint16_t a[2][4] = {{half(0x1p24f), half(1), half(-0x1p24f), half(0)}, {half(tiny), half(0), half(0), half(0)}};
  const uint16_t b[2][4] = {{half(1), half(1), half(0x1p10f), half(0)}, {half(1), half(0), half(0), half(0)}};
  float sums[2][2] = {{0.5f, 0}, {tiny, 0}};
  tiles.load<1>(sums, 8);
  tiles.load<2>(a, 8);
  tiles.load<7>(b, 8);
  tiles.dot_bfloat16<1, 2, 7>();
  tiles.store<1>(sums, 8);
  EXPECT_EQ(sums[0][0], 1.5f);
  EXPECT_EQ(sums[0][1], 0x1p34f);
  EXPECT_EQ(sums[1][0], 0) << "a subnormal input, and a subnormal sum";
}

TEST(SoftwareTilesDeathTest, RefusesWhatTheProcessorWould) {
  TileConfig unequal = config_of<4>();
  unequal.rows[4] = 3;
  EXPECT_DEATH((SoftwareTiles<generic::Vec>(unequal).dot_u8s8<0, 4, 6>()), "");
  TileConfig other = config_of<4>();
  other.palette = 0;
  EXPECT_DEATH((SoftwareTiles<generic::Vec>(other)), "");
}

}  // namespace
}  // namespace transept
