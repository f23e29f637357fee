// Encoders that round their keys and values to int8, at every level that has kernels of its own for it: against float32
// by what the rounding itself may lose, whatever stands beside a sequence, and what must show as NaN.
#include <gtest/gtest.h>

#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "base/sanitized_testing.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

constexpr Isa kLevels[] = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAmx};

class EncoderInt8Test : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
  }

  // prepare(setup): changes what run() reads.
  template <class Prepare>
  static AttentionResult run(const AttentionProblem& p, std::string_view backend_name, Prepare&& prepare,
                             std::vector<int32_t> captured_heads = {}) {
    const auto backend = std::move(make_attention_backend(backend_name).value());
    ThreadPool threads(2);
    Arena arena(size_t{64} << 20);
    CpuDevice device{threads, GetParam()};
    Context context{.device = device, .arena = arena};
    AttentionSetup setup(p, *backend);
    AttentionResult result = setup.run(context, std::move(captured_heads));
    if (prepare(setup)) {
      setup.run_again(context);
      result.out.clear();
      for (int64_t r = 0; r < p.num_rows(); ++r) {
        const float* row = setup.args().out.row(r);
        result.out.insert(result.out.end(), row, row + p.heads * p.dim);
      }
    }
    EXPECT_EQ(arena.num_overflows(), 0);
    return result;
  }
  static AttentionResult run(const AttentionProblem& p, std::string_view backend_name,
                             std::vector<int32_t> captured_heads = {}) {
    return run(
        p, backend_name, [](AttentionSetup&) { return false; }, std::move(captured_heads));
  }

  static AttentionProblem problem(const std::vector<int>& lengths, DType dtype = DType::kInt8) {
    AttentionProblem p;
    p.type = AttentionType::kEncoder;
    p.kv_dtype = dtype;
    p.causal = false;
    p.heads = p.kv_heads = 2;
    p.dim = 64;
    for (const int length : lengths) p.owners.push_back({static_cast<uint32_t>(length), length, {length}});
    return p;
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, EncoderInt8Test, ::testing::ValuesIn(kLevels),
                         [](const auto& v) { return std::string(isa_name(v.param)); });

// Root mean square, and the largest, of what is between two answers.
std::pair<double, double> differences(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0, most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    sum += difference * difference;
    most = std::max(most, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
  }
  return {std::sqrt(sum / static_cast<double>(a.size())), most};
}

// K and V lose what kv_dtype_test.cc derives, (2.2 sigma)^2 in the mean square, sigma = 2 / 127 / sqrt(12); q in eight
// bits as much as K through the scores, and probabilities a 253rd of a tile's largest: together below (3 sigma)^2.
TEST_P(EncoderInt8Test, LosesWhatRoundingLoses) {
  constexpr double kSigma = 2.0 / 127 / 3.46;
  int count = 0;
  for (const BiasForm bias : {BiasForm::kNone, BiasForm::kFull, BiasForm::kKeysApart, BiasForm::kT5, BiasForm::kAlibi,
                              BiasForm::kMasking, BiasForm::kShared}) {
    for (const int dim : {1, 12, 16, 37, 64, 80, 256}) {
      if (kSanitized && ++count % 5 != 0) continue;  // 5 is prime to 7 forms and to 7 sizes: each comes
      SCOPED_TRACE(::testing::Message() << "bias " << static_cast<int>(bias) << ", dimensions " << dim);
      AttentionProblem p = problem({1, 12, 64, 130, 33, 65});
      p.bias = bias;
      p.dim = dim;
      const std::vector<float> got = run(p, "cpu").out;
      p.kv_dtype = DType::kFloat32;
      const auto [error, most] = differences(got, run(p, "reference").out);
      EXPECT_LT(error, 3 * kSigma);
      EXPECT_LT(most, 18 * kSigma);
      if (dim > 1) {
        EXPECT_GT(error, kSigma / 30) << "nothing was rounded";
      }  // one number is its own scale
    }
  }
}

TEST_P(EncoderInt8Test, ManyTilesAndItems) {
  AttentionProblem p = problem({700});
  const std::vector<float> got = run(p, "cpu").out;
  p.kv_dtype = DType::kFloat32;
  const auto [error, most] = differences(got, run(p, "reference").out);
  EXPECT_LT(error, 0.003) << "errors average out over so many keys";
  EXPECT_LT(most, 0.02);
}

TEST_P(EncoderInt8Test, HeadsMayShareKeys) {
  AttentionProblem p = problem({50, 97});
  p.heads = 6;
  const std::vector<float> got = run(p, "cpu").out;
  p.kv_dtype = DType::kFloat32;
  EXPECT_LT(differences(got, run(p, "reference").out).first, 0.0136);
}

// A sequence's bits are the same alone and beside others, wherever its rows fall into chunks.
TEST_P(EncoderInt8Test, CompanyIsNotSeen) {
  for (const BiasForm bias : {BiasForm::kNone, BiasForm::kT5}) {
    AttentionProblem together = problem({5, 49, 1, 131, 12});
    together.bias = bias;
    const std::vector<float> all = run(together, "cpu").out;
    size_t at = 0;
    for (const KeyOwner& owner : together.owners) {
      AttentionProblem alone = together;
      alone.owners = {owner};
      const std::vector<float> one = run(alone, "cpu").out;
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + static_cast<ptrdiff_t>(at))) << owner.keys;
      at += one.size();
    }
    EXPECT_EQ(at, all.size());
  }
}

// One key dwarfs all others, which still share an eighth of the weight: the tile that it stands in may lose its own,
// the other tiles' must count.
TEST_P(EncoderInt8Test, ManySmallProbabilitiesCount) {
  constexpr int kKeys = 1024;
  AttentionProblem p = problem({kKeys});
  p.heads = p.kv_heads = 1;
  const double ratio = 7.0 * kKeys;
  const AttentionResult result = run(p, "cpu", [&](AttentionSetup& setup) {
    const AttentionArgs& args = setup.args();
    for (int64_t j = 0; j < kKeys; ++j) {
      for (int64_t d = 0; d < p.dim; ++d) {
        args.q.row(j)[d] = d == 0 ? 1.0f : 0.0f;
        args.k.row(j)[d] = d == 0 && j == 0 ? static_cast<float>(std::log(ratio)) / p.scale() : 0.0f;
        args.v.row(j)[d] = j == 0 ? 0.0f : 1.0f;
      }
    }
    return true;
  });
  const double others = kKeys - 1, exact = others / (others + ratio);
  EXPECT_LT(result.out[0], exact * 1.01);
  EXPECT_GT(result.out[0], exact * (1 - 64.0 / kKeys) * 0.98);
}

TEST_P(EncoderInt8Test, WhatIsNotFiniteShows) {
  for (const float strange : {NAN, INFINITY, -INFINITY}) {
    for (const int which : {0, 1, 2}) {
      SCOPED_TRACE(::testing::Message() << strange << " in "
                                        << "qkv"[which]);
      AttentionProblem p = problem({40, 100});
      const AttentionResult result = run(p, "cpu", [&](AttentionSetup& setup) {
        const AttentionArgs& args = setup.args();
        const TensorView& tensor = which == 0 ? args.q : which == 1 ? args.k : args.v;
        tensor.row(40 + 70)[5] = strange;  // head 0, key 70 of the second sequence
        return true;
      });
      const auto value = [&](int row, int head) {
        return result.out[(static_cast<size_t>(row) * static_cast<size_t>(p.heads) + static_cast<size_t>(head)) *
                              static_cast<size_t>(p.dim) +
                          3];
      };
      EXPECT_TRUE(std::isnan(value(40 + 70, 0)));
      EXPECT_EQ(std::isnan(value(40, 0)), which != 0) << "every row sees every key";
      EXPECT_FALSE(std::isnan(value(40 + 70, 1))) << "another head";
      EXPECT_FALSE(std::isnan(value(39, 0))) << "another sequence";
    }
  }
}

TEST_P(EncoderInt8Test, ZerosGiveZeros) {
  AttentionProblem p = problem({70});
  const AttentionResult result = run(p, "cpu", [&](AttentionSetup& setup) {
    for (int64_t r = 0; r < 70; ++r) {
      for (const TensorView& tensor : {setup.args().q, setup.args().k, setup.args().v}) {
        std::fill_n(tensor.row(r), p.heads * p.dim, 0.0f);
      }
    }
    return true;
  });
  for (const float value : result.out) ASSERT_EQ(value, 0);
}

// Who asks for probabilities, or lets rows see only what came before them, is served too.
TEST_P(EncoderInt8Test, CapturesAndMasks) {
  AttentionProblem p = problem({20, 90});
  const AttentionResult got = run(p, "cpu", {1}), want = run(p, "reference", {1});
  EXPECT_LT(differences(got.out, want.out).second, 0.001);
  EXPECT_LT(differences(got.probabilities, want.probabilities).second, 0.001);
  p.causal = true;
  EXPECT_LT(differences(run(p, "cpu").out, run(p, "reference").out).second, 0.001);
}

}  // namespace
}  // namespace transept
