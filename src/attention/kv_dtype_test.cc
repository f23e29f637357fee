// KV in 16 bits and in int8: single values by their definitions; every level against the reference backend on the same
// type, tightly; both against float32, by what the type itself rounds away; and what must show as NaN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "attention/kv_values.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

constexpr DType kNarrow[] = {DType::kFloat16, DType::kBFloat16, DType::kInt8};
constexpr Isa kLevels[] = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni};

// --- Values

// Rounding, tried on every pattern: a value stays itself, the middle between two neighbours goes to the even one, and
// what is a little off the middle to the nearer one.
template <typename Narrow, typename Widen>
void expect_nearest_even(Narrow&& narrow, Widen&& widen, uint32_t largest_bits) {
  for (uint32_t bits = 0; bits < largest_bits; ++bits) {
    const float low = widen(static_cast<uint16_t>(bits)), high = widen(static_cast<uint16_t>(bits + 1));
    ASSERT_EQ(narrow(low), bits);
    ASSERT_EQ(narrow(-low), bits | 0x8000);
    const float middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
    if (!(middle > low && middle < high)) continue;  // bfloat16's subnormals: float32 has no place between the smallest
    ASSERT_EQ(narrow(middle), bits % 2 == 0 ? bits : bits + 1) << low;
    ASSERT_EQ(narrow(std::nextafter(middle, high)), bits + 1) << low;
    ASSERT_EQ(narrow(std::nextafter(middle, low)), bits) << low;
  }
}

TEST(KvValues, SixteenBitsAreRoundedToNearestEven) {
  expect_nearest_even(saturated_float16, float16_to_float, 0x7BFF);
  expect_nearest_even(float_to_bfloat16, bfloat16_to_float, 0x7F7F);
  EXPECT_EQ(saturated_float16(1e6f), 0x7BFF) << "beyond the range: the largest";
  EXPECT_EQ(saturated_float16(-INFINITY), 0xFBFF);
  EXPECT_TRUE(std::isnan(float16_to_float(saturated_float16(NAN))));
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(NAN))));
  EXPECT_EQ(bfloat16_to_float(float_to_bfloat16(-INFINITY)), -INFINITY);
}

TEST(KvValues, Int8HasAScaleThatReachesTheLargest) {
  const float x[] = {0.5f, -2.54f, 1.27f, 0};
  const float scale = int8_scale(x, 4);
  EXPECT_FLOAT_EQ(scale, 0.02f);
  EXPECT_EQ(float_to_int8(x[0], scale), 25);
  EXPECT_EQ(float_to_int8(x[1], scale), -127);
  EXPECT_EQ(float_to_int8(x[2], scale), 64);  // 63.5: to even
  const float zeros[3] = {}, tiny[] = {1e-40f}, infinite[] = {1, INFINITY};
  EXPECT_EQ(int8_scale(zeros, 3), 0);
  EXPECT_EQ(int8_scale(tiny, 1), 0);
  EXPECT_EQ(float_to_int8(1e-40f, 0), 0);
  EXPECT_TRUE(std::isnan(int8_scale(infinite, 2)));
}

// --- One key: attention gives back V as it was stored.

std::vector<float> stored(std::string_view backend_name, Isa isa, DType dtype, std::vector<float> k,
                          std::vector<float> v, float last_of_q = 0.5f) {
  const auto backend = std::move(make_attention_backend(backend_name).value());
  const auto dim = static_cast<int64_t>(v.size());
  constexpr int32_t kBlockSize = 16;
  const KvSpec spec{.num_kv_heads = 1, .head_dim = static_cast<int32_t>(dim)};
  PageBuffer cache(backend->block_bytes(spec, kBlockSize, dtype));
  std::memset(cache.data(), 0xFF, cache.size());
  std::vector<float> q(v.size(), 0.5f), out(v.size());
  q.back() = last_of_q;
  const std::vector<int32_t> start = {0, 1}, lens = {1}, table = {0}, context_lens = {0};
  const std::vector<int64_t> slots = {0};
  AttentionMetadata metadata{.num_seqs = 1,
                             .max_query_len = 1,
                             .max_kv_len = 1,
                             .query_start_loc = start,
                             .context_lens = context_lens,
                             .seq_lens = lens,
                             .block_tables = table,
                             .max_blocks_per_seq = 1,
                             .block_size = kBlockSize,
                             .kv_dtype = dtype,
                             .slot_mapping = slots};
  const auto rows = [&](std::vector<float>& data) { return TensorView(data.data(), DType::kFloat32, {1, 1, dim}); };
  AttentionArgs args;
  args.q = rows(q);
  args.k = rows(k);
  args.v = rows(v);
  args.out = rows(out);
  args.kv_cache = TensorView(cache.data(), DType::kUInt8, {1, static_cast<int64_t>(cache.size())});
  ThreadPool threads(1);
  Arena arena(size_t{1} << 20);
  CpuDevice device{threads, isa};
  Context context{.device = device, .arena = arena};
  const int32_t id = 0;
  ForwardBatch batch{.input_ids = {&id, 1}, .attention = {&metadata, 1}};
  backend->plan(context, batch);
  backend->run(context, AttentionType::kDecoder, metadata, args);
  return out;
}

// Numbers around everything that rounding treats apart.
std::vector<float> awkward_values(DType dtype, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<float> values;
  for (int i = 0; i < 250; ++i) {
    const auto bits = static_cast<uint16_t>(rng() % (dtype == DType::kFloat16 ? 0x7BFF : 0x7F00));
    const float low = dtype == DType::kFloat16 ? float16_to_float(bits) : bfloat16_to_float(bits);
    const float high = dtype == DType::kFloat16 ? float16_to_float(bits + 1) : bfloat16_to_float(bits + 1);
    const float middle = low + (high - low) / 2;
    const float some[] = {low, middle, std::nextafter(middle, high), std::nextafter(middle, low)};
    values.push_back((rng() % 2 == 0 ? 1.0f : -1.0f) * some[rng() % 4]);
  }
  for (const float edge : {65504.0f, 65519.0f, 65520.0f, 0.0f}) values.push_back(edge);
  return values;
}

TEST(KvStores, EveryLevelRoundsAsTheReference) {
  for (const Isa isa : kLevels) {
    if (isa > detect_isa()) continue;
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
      for (uint32_t seed = 0; seed < 40; ++seed) {
        const std::vector<float> v = awkward_values(dtype, seed), k(v.size(), 1.0f);
        EXPECT_EQ(stored("cpu", isa, dtype, k, v), stored("reference", isa, dtype, k, v))
            << isa_name(isa) << " " << dtype_name(dtype) << " seed " << seed;
      }
    }
    for (uint32_t seed = 0; seed < 40; ++seed) {
      std::mt19937 rng(seed);
      std::vector<float> v;
      const float magnitude = std::ldexp(1.0f, static_cast<int>(rng() % 60) - 30);
      for (uint32_t i = 0; i < 1 + seed * 6; ++i) v.push_back(magnitude * static_cast<float>(rng() % 2001) / 1000.0f);
      const std::vector<float> got = stored("cpu", isa, DType::kInt8, v, v);
      const float scale = int8_scale(v.data(), static_cast<int64_t>(v.size()));
      for (size_t d = 0; d < v.size(); ++d) {
        const float value = scale * static_cast<float>(float_to_int8(v[d], scale));
        ASSERT_NEAR(got[d], value, 4e-7f * std::abs(value)) << isa_name(isa) << " dim " << d << " of " << v.size();
      }
    }
  }
}

TEST(KvStores, WhatIsNotFiniteShows) {
  for (const char* backend : {"reference", "cpu"}) {
    for (const Isa isa : kLevels) {
      if (isa > detect_isa()) continue;
      const std::vector<float> fine(20, 1.0f), zeros(20, 0.0f);
      for (const float bad : {NAN, INFINITY}) {
        std::vector<float> v = fine;
        v[7] = bad;
        EXPECT_TRUE(std::isnan(stored(backend, isa, DType::kInt8, fine, v)[7])) << backend << isa_name(isa);
        EXPECT_TRUE(std::isnan(stored(backend, isa, DType::kInt8, v, fine)[0])) << backend << isa_name(isa);
      }
      std::vector<float> v = fine;
      v[7] = NAN;
      for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
        EXPECT_TRUE(std::isnan(stored(backend, isa, dtype, fine, v)[7])) << backend << isa_name(isa);
        EXPECT_EQ(stored(backend, isa, dtype, fine, v)[6], 1);
      }
      for (const DType dtype : kNarrow) {
        EXPECT_TRUE(std::isnan(stored(backend, isa, dtype, fine, fine, NAN)[0])) << backend << isa_name(isa);
        EXPECT_TRUE(std::isnan(stored(backend, isa, dtype, fine, fine, INFINITY)[0])) << backend << isa_name(isa);
      }
      for (const DType dtype : kNarrow) EXPECT_EQ(stored(backend, isa, dtype, zeros, zeros), zeros);
    }
  }
}

// --- Whole problems

AttentionResult run(const AttentionProblem& p, std::string_view backend_name, Isa isa,
                    std::vector<int32_t> captured_heads = {}) {
  const auto backend = std::move(make_attention_backend(backend_name).value());
  ThreadPool threads(2);
  Arena arena(size_t{32} << 20);
  CpuDevice device{threads, isa};
  Context context{.device = device, .arena = arena};
  AttentionResult result = AttentionSetup(p, *backend).run(context, std::move(captured_heads));
  EXPECT_EQ(arena.num_overflows(), 0);
  return result;
}

AttentionProblem kv_problem(AttentionType type, DType dtype) {
  AttentionProblem p;
  p.type = type;
  p.kv_dtype = dtype;
  p.heads = p.kv_heads = 2;
  p.causal = type == AttentionType::kDecoder;
  if (type == AttentionType::kDecoder) {
    p.owners = {{1, 1, {1}}, {2, 7, {7}}, {3, 64, {1}}, {4, 65, {1}}, {5, 150, {9}}, {6, 130, {1}}};
  } else {
    p.owners = {{1, 5, {1}}, {2, 64, {1, 1, 1, 1, 1}}, {3, 0, {2}}, {4, 130, {3, 1}}, {5, 1, {1}}, {6, 33, {1, 8}}};
  }
  return p;
}

constexpr AttentionType kCached[] = {AttentionType::kDecoder, AttentionType::kEncoderDecoder};

// Of 16 bits both read the same K and V, so only float32's arithmetic differs (backend_test.cc's tolerance). Of int8
// the cpu backend rounds q and the probabilities to 15 bits too. |q|, |k|, |v| < 2. A score's error is a sum of dim
// errors of q, each uniform within 2 / 65024, times |k| (1.15 in the mean square), over sqrt(dim): sigma 2.1e-5; a
// tile's p.V errs by at most 64 errors within 1 / 65534 of its largest p, times |v|: sigma 8e-5 of it. Eight sigma of
// both, times |v - out| < 4 for the score's: 1.3e-3 if one key has all the weight, and it has not: keys share it.
double same_type_tolerance(DType dtype) { return dtype == DType::kInt8 ? 3e-4 : 1e-5; }

void expect_near(const std::vector<float>& got, const std::vector<float>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << "at " << i;
}

class KvTypeTest : public ::testing::TestWithParam<std::tuple<Isa, DType>> {
 protected:
  void SetUp() override {
    if (isa() > detect_isa()) GTEST_SKIP() << isa_name(isa()) << " is not present on this processor";
  }
  static Isa isa() { return std::get<0>(GetParam()); }
  static DType dtype() { return std::get<1>(GetParam()); }

  static void expect_as_reference(const AttentionProblem& p, const std::vector<int32_t>& heads = {}) {
    SCOPED_TRACE(::testing::Message() << "type " << static_cast<int>(p.type) << " heads " << p.heads << "/"
                                      << p.kv_heads << " dim " << p.dim << " block " << p.block_size);
    const AttentionResult got = run(p, "cpu", isa(), heads), want = run(p, "reference", isa(), heads);
    expect_near(got.out, want.out, same_type_tolerance(dtype()));
    expect_near(got.probabilities, want.probabilities, same_type_tolerance(dtype()));
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, KvTypeTest,
                         ::testing::Combine(::testing::ValuesIn(kLevels), ::testing::ValuesIn(kNarrow)),
                         [](const auto& v) {
                           return std::string(isa_name(std::get<0>(v.param))) + "_" +
                                  std::string(dtype_name(std::get<1>(v.param)));
                         });

TEST_P(KvTypeTest, IsTheReferencesForEveryHeadAndBlockSize) {
  for (const AttentionType type : kCached) {
    for (const int dim : {1, 3, 12, 37, 64, 80, 256}) {
      AttentionProblem p = kv_problem(type, dtype());
      p.dim = dim;
      expect_as_reference(p);
      if (HasFatalFailure()) return;
    }
    for (const int block_size : {1, 3, 4, 8, 24, 32, 100}) {
      AttentionProblem p = kv_problem(type, dtype());
      p.block_size = block_size;
      p.dim = 20;
      expect_as_reference(p);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(KvTypeTest, IsTheReferencesForSharedHeadsBiasesAndCapture) {
  for (const AttentionType type : kCached) {
    for (const BiasForm bias : {BiasForm::kNone, BiasForm::kFull, BiasForm::kMasking, BiasForm::kT5}) {
      AttentionProblem p = kv_problem(type, dtype());
      p.heads = 6;
      p.kv_heads = bias == BiasForm::kFull ? 3 : 2;
      p.bias = bias;
      expect_as_reference(p, {3, 1});
      if (HasFatalFailure()) return;
    }
  }
}

// What the type may lose. Errors of K and V are independent, and uniform within half a place: of int8, places are
// 2 / 127 or less; of 16 bits, 2^-bits of the value's power of two and at most 2 here. sigma = place / sqrt(12). A
// score's error is that of K times |q| (1.15 in the mean square) sqrt(dim) / sqrt(dim); it moves the output by itself
// times p (v - out); V's error by p. So the mean square error is at most (1.15 x 1.63 sigma)^2 + sigma^2 = (2.2
// sigma)^2, as sum p^2 <= 1 (1.63: of v - out for two independent values). And a tenth of nothing would be float32's.
double expected_error(DType dtype) {
  const double place = dtype == DType::kInt8 ? 2.0 / 127 : dtype == DType::kFloat16 ? 0x1p-10 : 0x1p-7;
  return 2.2 * place / std::sqrt(12.0);
}

double root_mean_square_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

TEST_P(KvTypeTest, LosesWhatItsRoundingLoses) {
  for (const AttentionType type : kCached) {
    AttentionProblem p = kv_problem(type, dtype());
    p.dim = 64;
    const std::vector<float> narrow = run(p, "cpu", isa()).out, same = run(p, "reference", isa()).out;
    p.kv_dtype = DType::kFloat32;
    const std::vector<float> exact = run(p, "reference", isa()).out;
    for (const std::vector<float>& out : {narrow, same}) {
      const double error = root_mean_square_difference(out, exact);
      EXPECT_LT(error, expected_error(dtype()));
      EXPECT_GT(error, expected_error(dtype()) / 30) << "so small an error is that of another type";
    }
  }
}

TEST_P(KvTypeTest, BlocksThatWereNeverWrittenShow) {
  for (const char* name : {"cpu", "reference"}) {
    AttentionProblem p = kv_problem(AttentionType::kEncoderDecoder, dtype());
    p.owners = {{1, 70, {1, 1}}};
    const auto backend = std::move(make_attention_backend(name).value());
    ThreadPool threads(1);
    Arena arena(size_t{1} << 20);
    CpuDevice device{threads, isa()};
    Context context{.device = device, .arena = arena};
    AttentionSetup setup(p, *backend);
    setup.plan(context);
    setup.run_again(context);  // without what was to be written
    for (int64_t i = 0; i < setup.args().out.dim(0); ++i) {
      EXPECT_TRUE(std::isnan(*setup.args().out.row(i))) << name << " row " << i;
    }
  }
}

// Encoders round their keys and values too where they are asked to; with VNNI in a way of their own
// (encoder_int8_test.cc).
TEST(KvInt8, EncodersRoundAsTheReferenceDoes) {
  for (const int dim : {1, 12, 37, 64, 80}) {
    for (const BiasForm bias : {BiasForm::kNone, BiasForm::kT5}) {
      AttentionProblem p = kv_problem(AttentionType::kEncoder, DType::kInt8);
      p.owners = {{1, 1, {1}}, {1, 64, {64}}, {1, 130, {130}}, {1, 33, {33}}};
      p.dim = dim;
      p.bias = bias;
      const std::vector<float> want = run(p, "reference", Isa::kGeneric).out;
      AttentionProblem exact = p;
      exact.kv_dtype = DType::kFloat32;
      for (const Isa isa : present_isas()) {
        if (isa >= Isa::kAvx512Vnni) continue;
        SCOPED_TRACE(::testing::Message() << isa_name(isa) << " dim " << dim);
        const std::vector<float> got = run(p, "cpu", isa).out;
        expect_near(got, want, same_type_tolerance(DType::kInt8));
        EXPECT_NE(got, run(exact, "cpu", isa).out) << "nothing was rounded";
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Integer sums are exact: from 16 lanes on what VNNI gives is what AVX-512 without it gives, bit by bit.
TEST(KvInt8, BitsDoNotDependOnVnni) {
  if (detect_isa() < Isa::kAvx512Vnni) GTEST_SKIP() << "avx512_vnni is not present on this processor";
  for (const AttentionType type : kCached) {
    for (const int dim : {12, 64}) {
      AttentionProblem p = kv_problem(type, DType::kInt8);
      p.dim = dim;
      EXPECT_EQ(run(p, "cpu", Isa::kAvx512).out, run(p, "cpu", Isa::kAvx512Vnni).out) << dim;
    }
  }
}

// Blocks are copied, swapped and forked as bytes: nothing about a key lies outside them.
TEST_P(KvTypeTest, BytesOfABlockAreAllThereIs) {
  AttentionProblem p = kv_problem(AttentionType::kEncoderDecoder, dtype());
  p.owners = {{1, 100, {1, 1, 1}}};
  const auto backend = std::move(make_attention_backend("cpu").value());
  ThreadPool threads(1);
  Arena arena(size_t{1} << 20);
  CpuDevice device{threads, isa()};
  Context context{.device = device, .arena = arena};
  AttentionSetup setup(p, *backend);
  const AttentionResult before = setup.run(context);
  // The layer of every block goes elsewhere, in reverse order; its old place is poisoned.
  const TensorView old = setup.args().kv_cache;
  const auto num_blocks = static_cast<size_t>(old.dim(0)), bytes = static_cast<size_t>(old.dim(1));
  PageBuffer elsewhere(num_blocks * bytes);
  for (size_t b = 0; b < num_blocks; ++b) {
    auto* from = static_cast<std::byte*>(old.raw) + static_cast<int64_t>(b) * old.stride[0];
    std::memcpy(elsewhere.data() + (num_blocks - 1 - b) * bytes, from, bytes);
    std::memset(from, 0xFF, bytes);
  }
  setup.args().kv_cache =
      TensorView(elsewhere.data(), DType::kUInt8, {static_cast<int64_t>(num_blocks), static_cast<int64_t>(bytes)});
  std::vector<int32_t> tables(setup.metadata().block_tables.begin(), setup.metadata().block_tables.end());
  for (int32_t& id : tables) id = id < 0 ? id : static_cast<int32_t>(num_blocks) - 1 - id;
  setup.metadata().block_tables = tables;
  setup.run_again(context);
  std::vector<float> after;
  for (int64_t i = 0; i < setup.args().out.dim(0); ++i) {
    const float* row = setup.args().out.row(i);
    after.insert(after.end(), row, row + p.heads * p.dim);
  }
  EXPECT_EQ(after, before.out);
}

}  // namespace
}  // namespace transept
