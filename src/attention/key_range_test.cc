// Ranges of keys by row in the cpu backend, at every level and with every type of KV: near the reference
// (backend_test.cc compares both with a naive loop), and in the same bits whatever other rows see. Keys outside of a
// row's range do not matter, and tiles that no row sees are not read.
#include <gtest/gtest.h>

#include <numeric>

#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "base/sanitized_testing.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

constexpr DType kTypesOfKv[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8};
constexpr Isa kLevels[] = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni};

int num_rows(const KeyOwner& owner) { return std::accumulate(owner.rows.begin(), owner.rows.end(), 0); }

// As in kv_dtype_test.cc, which derives them: int8's q and probabilities are rounded by the cpu backend alone.
double tolerance(DType dtype) { return dtype == DType::kInt8 ? 3e-4 : 1e-5; }

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class KeyRangeTest : public ::testing::TestWithParam<std::tuple<Isa, DType>> {
 protected:
  void SetUp() override {
    if (isa() > detect_isa()) GTEST_SKIP() << isa_name(isa()) << " is not present on this processor";
  }
  static Isa isa() { return std::get<0>(GetParam()); }
  static DType dtype() { return std::get<1>(GetParam()); }

  // Groups of sequences with a cross table each; ranges by row.
  static AttentionProblem problem(uint32_t seed) {
    std::mt19937 rng(seed);
    AttentionProblem p;
    p.type = AttentionType::kEncoderDecoder;
    p.causal = false;
    p.kv_dtype = dtype();
    p.heads = 4;
    p.kv_heads = 2;
    p.dim = 24;
    p.bias = BiasForm::kFull;
    p.owners = {{1, 300, {9, 1, 14}}, {2, 64, {1, 1, 1}}, {3, 0, {2}}, {4, 130, {7}}, {5, 200, {130}}};
    for (KeyOwner& owner : p.owners) owner.ranges = random_ranges(rng, num_rows(owner), owner.keys);
    return p;
  }

  static AttentionResult run(const AttentionProblem& p, std::string_view backend_name = "cpu", int threads = 2,
                             std::vector<int32_t> captured_heads = {}) {
    const auto backend = std::move(make_attention_backend(backend_name).value());
    ThreadPool pool(threads);
    Arena arena(size_t{32} << 20);
    CpuDevice device{pool, isa()};
    Context context{.device = device, .arena = arena};
    AttentionResult result = AttentionSetup(p, *backend).run(context, std::move(captured_heads));
    EXPECT_EQ(arena.num_overflows(), 0);
    return result;
  }

  // The results of one row, which sees `range`: alone in its step.
  static AttentionResult run_alone(const AttentionProblem& batch, const KeyOwner& owner, int seq, int row,
                                   const KeyRange& range) {
    AttentionProblem p = batch;
    p.owners = {owner};
    KeyOwner& only = p.owners[0];
    only.rows.assign(static_cast<size_t>(seq) + 1, 0);
    only.rows.back() = 1;
    only.cross_context = row;
    only.ranges = {range};
    return run(p, "cpu", 1, {1});
  }

  // Compares each row of the batch, whose results are given, with the row alone. `stride`: of the rows that are tried.
  static void expect_bits_of_rows_alone(const AttentionProblem& p, const AttentionResult& result, int stride) {
    const auto width = static_cast<size_t>(p.heads) * static_cast<size_t>(p.dim);
    const size_t most_keys = result.probabilities.size() / static_cast<size_t>(p.num_rows());
    size_t row = 0;
    for (const KeyOwner& owner : p.owners) {
      size_t in_owner = 0;
      for (size_t s = 0; s < owner.rows.size(); ++s) {
        for (int i = 0; i < owner.rows[s]; ++i, ++row, ++in_owner) {
          if (owner.keys == 0 || static_cast<int>(row) % stride != 0) continue;
          const KeyRange& range = owner.ranges[in_owner];
          const AttentionResult alone = run_alone(p, owner, static_cast<int>(s), i, range);
          ASSERT_TRUE(same_bits(alone.out, std::span(result.out).subspan(row * width, width)))
              << "owner " << owner.id << " row " << in_owner << " sees [" << range.begin << ", " << range.end << ")";
          ASSERT_TRUE(same_bits(alone.probabilities,
                                std::span(result.probabilities).subspan(row * most_keys, alone.probabilities.size())))
              << "owner " << owner.id << " row " << in_owner << " sees [" << range.begin << ", " << range.end << ")";
        }
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, KeyRangeTest,
                         ::testing::Combine(::testing::ValuesIn(kLevels), ::testing::ValuesIn(kTypesOfKv)),
                         [](const auto& v) {
                           return std::string(isa_name(std::get<0>(v.param))) + "_" +
                                  std::string(dtype_name(std::get<1>(v.param)));
                         });

TEST_P(KeyRangeTest, IsTheReferencesForEveryBlockSizeAndBias) {
  uint32_t seed = 0;
  for (const int block_size : {1, 3, 8, 16, 24, 64, 100}) {
    if (kSanitized && block_size != 3 && block_size != 24) continue;
    for (const BiasForm bias : {BiasForm::kNone, BiasForm::kFull, BiasForm::kMasking, BiasForm::kT5}) {
      AttentionProblem p = problem(++seed);
      p.block_size = block_size;
      p.bias = bias;
      p.kv_heads = 1 << seed % 3;
      p.dim = seed % 2 == 0 ? 20 : 64;
      SCOPED_TRACE(::testing::Message() << "block size " << block_size << " bias " << static_cast<int>(bias));
      const AttentionResult got = run(p, "cpu", 2, {3, 1}), want = run(p, "reference", 2, {3, 1});
      ASSERT_EQ(got.out.size(), want.out.size());
      for (size_t i = 0; i < got.out.size(); ++i) ASSERT_NEAR(got.out[i], want.out[i], tolerance(dtype())) << i;
      ASSERT_EQ(got.probabilities.size(), want.probabilities.size());
      for (size_t i = 0; i < got.probabilities.size(); ++i) {
        ASSERT_NEAR(got.probabilities[i], want.probabilities[i], tolerance(dtype())) << i;
      }
    }
  }
}

TEST_P(KeyRangeTest, ARowsBitsDependOnItsRangeAlone) {
  const AttentionProblem batch = problem(50);
  const AttentionResult result = run(batch, "cpu", 2, {1});
  expect_bits_of_rows_alone(batch, result, kSanitized ? 5 : 1);
  for (const int block_size : {1, 8, 24, 64}) {
    for (const int threads : {1, 3}) {
      if (kSanitized && (block_size == 24) != (threads == 3)) continue;
      AttentionProblem p = batch;
      p.block_size = block_size;
      const AttentionResult other = run(p, "cpu", threads, {1});
      EXPECT_TRUE(same_bits(other.out, result.out)) << "block size " << block_size << " threads " << threads;
      EXPECT_TRUE(same_bits(other.probabilities, result.probabilities)) << block_size << " threads " << threads;
    }
  }
  for (const uint32_t seed : {51u, 52u}) {  // the same rows beside rows of other ranges
    const AttentionProblem p = problem(seed);
    expect_bits_of_rows_alone(p, run(p, "cpu", 2, {1}), 5);
  }
}

TEST_P(KeyRangeTest, AFullRangeGivesTheBitsOfNoRanges) {
  AttentionProblem p = problem(60), without = p;
  for (KeyOwner& owner : without.owners) owner.ranges.clear();
  for (KeyOwner& owner : p.owners) {
    for (KeyRange& range : owner.ranges) range = {0, owner.keys};
  }
  const AttentionResult got = run(p, "cpu", 2, {0, 2}), want = run(without, "cpu", 2, {0, 2});
  EXPECT_TRUE(same_bits(got.out, want.out));
  EXPECT_TRUE(same_bits(got.probabilities, want.probabilities));
  // A range from 0 on gives the bits of a sequence that ends there.
  p.owners = {{1, 300, {1, 1}, 0, {{0, 100}, {0, 100}}}};
  without.owners = {{1, 100, {1, 1}}};
  EXPECT_TRUE(same_bits(run(p).out, run(without).out));
}

TEST_P(KeyRangeTest, AnEmptyRangeGivesZeros) {
  AttentionProblem p = problem(70);
  p.owners = {{1, 300, {9, 1}}, {2, 64, {1}}};  // whole groups without keys
  p.owners[0].ranges.assign(10, {130, 130});
  p.owners[1].ranges = {{64, 0}};
  const AttentionResult none = run(p, "cpu", 2, {0});
  EXPECT_EQ(none.out, std::vector<float>(none.out.size(), 0.0f));
  EXPECT_EQ(none.probabilities, std::vector<float>(none.probabilities.size(), 0.0f));
  p.owners[0].ranges[3] = {128, 200};  // beside a row with some
  const AttentionResult some = run(p, "cpu", 2, {0});
  const auto width = static_cast<size_t>(p.heads) * static_cast<size_t>(p.dim);
  for (size_t i = 0; i < some.out.size(); ++i) {
    ASSERT_EQ(some.out[i] == 0.0f, i / width != 3) << "row " << i / width;
  }
}

TEST_P(KeyRangeTest, KeysOutsideOfTheRangeDoNotMatter) {
  for (const KeyRange range : {KeyRange{70, 120}, {64, 128}, {0, 65}, {130, 131}, {100, 300}}) {
    AttentionProblem p = problem(80);
    p.owners = {{1, 300, {7, 2}}};
    p.owners[0].ranges.assign(9, range);
    const AttentionResult quiet = run(p, "cpu", 2, {1});
    for (const KeyRange loud : {KeyRange{0, range.begin}, KeyRange{range.end, 300}}) {
      p.owners[0].loud = loud;
      const AttentionResult got = run(p, "cpu", 2, {1});
      EXPECT_TRUE(same_bits(got.out, quiet.out)) << "[" << range.begin << ", " << range.end << ")";
      EXPECT_TRUE(same_bits(got.probabilities, quiet.probabilities)) << "[" << range.begin << ", " << range.end << ")";
    }
  }
}

// Two chunks of rows see a tile each; the tiles before, between and after are poisoned once they have been written.
TEST_P(KeyRangeTest, TilesThatNoRowSeesAreNotRead) {
  for (const int block_size : {1, 16, 64}) {
    AttentionProblem p = problem(90);
    p.block_size = block_size;
    p.kv_heads = p.heads;
    p.owners = {{1, 300, {6, 6}}};
    p.owners[0].ranges.assign(6, {200, 250});
    p.owners[0].ranges.insert(p.owners[0].ranges.end(), 6, {70, 120});
    const auto backend = std::move(make_attention_backend("cpu").value());
    ThreadPool threads(1);
    Arena arena(size_t{4} << 20);
    CpuDevice device{threads, isa()};
    Context context{.device = device, .arena = arena};
    AttentionSetup setup(p, *backend);
    const AttentionResult before = setup.run(context);
    const TensorView& cache = setup.args().kv_cache;
    for (int64_t key = 0; key < 300; key += block_size) {
      const int64_t tile = key / 64;
      if (tile == 1 || tile == 3) continue;
      const int64_t block = setup.metadata().block_tables[static_cast<size_t>(key / block_size)];
      std::memset(static_cast<std::byte*>(cache.raw) + block * cache.stride[0], 0xFF,
                  static_cast<size_t>(cache.dim(1)));
    }
    setup.run_again(context);
    std::vector<float> after;
    for (int64_t r = 0; r < setup.args().out.dim(0); ++r) {
      const float* row = setup.args().out.row(r);
      after.insert(after.end(), row, row + p.heads * p.dim);
    }
    EXPECT_TRUE(same_bits(after, before.out)) << "block size " << block_size;
  }
}

}  // namespace
}  // namespace transept
