// Encoders that round their keys and values to bfloat16 (encoder_bfloat16.h): against float32 over rounded numbers,
// whatever stands beside a sequence, and levels that have no such products.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "attention/attention_problem_testing.h"
#include "attention/backends.h"
#include "ops/cpu_device.h"

namespace transept {
namespace {

AttentionProblem problem(const std::vector<int>& lengths, int dim = 64) {
  AttentionProblem p;
  p.type = AttentionType::kEncoder;
  p.kv_dtype = DType::kBFloat16;
  p.causal = false;
  p.heads = p.kv_heads = 2;
  p.dim = dim;
  for (const int length : lengths) p.owners.push_back({static_cast<uint32_t>(length), length, {length}});
  return p;
}

// look: is shown the arguments after the run.
std::vector<float> run(const AttentionProblem& p, Isa isa, std::string_view backend_name, bool rounds_first = false,
                       const std::function<void(const AttentionArgs&)>& look = {}) {
  const auto backend = std::move(make_attention_backend(backend_name).value());
  ThreadPool threads(2);
  Arena arena(size_t{64} << 20);
  CpuDevice device{threads, isa};
  Context context{.device = device, .arena = arena};
  AttentionSetup setup(p, *backend);
  if (!rounds_first) return setup.run(context, {}).out;
  setup.run(context, {});
  const AttentionArgs& args = setup.args();
  for (const TensorView* rows : {&args.q, &args.k, &args.v}) {
    for (int64_t r = 0; r < rows->dim(0); ++r) {
      for (int64_t i = 0; i < rows->dim(1) * rows->dim(2); ++i) {
        float& x = rows->row(r)[i];
        x = bfloat16_to_float(float_to_bfloat16(x));
      }
    }
  }
  setup.run_again(context);
  EXPECT_EQ(arena.num_overflows(), 0);
  if (look) look(args);
  std::vector<float> out;
  for (int64_t r = 0; r < p.num_rows(); ++r) out.insert(out.end(), args.out.row(r), args.out.row(r) + p.heads * p.dim);
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    most = std::max(most, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
  }
  return most;
}

class EncoderBFloat16Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (detect_isa() < Isa::kAvx512Bf16) GTEST_SKIP() << "avx512_bf16 is not present on this processor";
  }
};

// Rounding to bfloat16, of 8 significant bits, moves a number by at most 2^-8 of itself.
constexpr double kUnit = 1.0 / 256;

// Beside q, K and V only the exponentials are rounded, so an output moves by kUnit of the largest value at most, which
// is 2.
TEST_F(EncoderBFloat16Test, IsFloat32OverRoundedNumbersButForTheExponentials) {
  for (const BiasForm bias : {BiasForm::kNone, BiasForm::kFull, BiasForm::kKeysApart, BiasForm::kT5, BiasForm::kAlibi,
                              BiasForm::kMasking, BiasForm::kShared}) {
    for (const int dim : {1, 12, 16, 37, 64, 80, 256}) {
      SCOPED_TRACE(::testing::Message() << "bias " << static_cast<int>(bias) << ", dimensions " << dim);
      AttentionProblem p = problem({1, 12, 64, 130, 33, 65}, dim);
      p.bias = bias;
      const std::vector<float> got = run(p, Isa::kAvx512Bf16, "cpu");
      EXPECT_EQ(got, run(p, Isa::kAvx512Bf16, "cpu", true)) << "rounded numbers stay what they are";
      p.kv_dtype = DType::kFloat32;
      EXPECT_LT(largest_difference(got, run(p, Isa::kAvx512Bf16, "reference", true)), 2 * kUnit + 1e-4);
      EXPECT_GT(largest_difference(got, run(p, Isa::kAvx512Bf16, "reference")), 1e-4) << "nothing was rounded";
    }
  }
}

// What softmax of one head gives key by key, over the arguments' q and K.
std::vector<double> shares_of(const AttentionArgs& args, const AttentionProblem& p, int64_t row, int head) {
  std::vector<double> shares(static_cast<size_t>(args.k.dim(0)));
  for (size_t j = 0; j < shares.size(); ++j) {
    const float *q = args.q.row(row) + head * p.dim, *k = args.k.row(static_cast<int64_t>(j)) + head * p.dim;
    shares[j] = std::exp(p.scale() * std::inner_product(q, q + p.dim, k, 0.0));
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

// The exponentials' errors are not one another's, so that they add as squares do: an output moves by the root of
// sum (share * value * error)^2, and an error's mean square is a third of kUnit's square at most.
TEST_F(EncoderBFloat16Test, ExponentialsErrorsAddAsSquares) {
  AttentionProblem p = problem({700});
  const std::vector<float> got = run(p, Isa::kAvx512Bf16, "cpu");
  p.kv_dtype = DType::kFloat32;
  double expected_squares = 0;
  const std::vector<float> expected = run(p, Isa::kAvx512Bf16, "reference", true, [&](const AttentionArgs& args) {
    for (int64_t row = 0; row < args.q.dim(0); row += 10) {
      for (int head = 0; head < p.heads; ++head) {
        const std::vector<double> shares = shares_of(args, p, row, head);
        for (size_t j = 0; j < shares.size(); ++j) {
          const float* v = args.v.row(static_cast<int64_t>(j)) + head * p.dim;
          expected_squares += std::pow(shares[j] * kUnit, 2) / 3 * std::inner_product(v, v + p.dim, v, 0.0);
        }
      }
    }
  });
  double squares = 0;
  for (size_t i = 0; i < got.size(); ++i) squares += std::pow(static_cast<double>(got[i]) - expected[i], 2);
  EXPECT_LT(squares, 10 * expected_squares) << "every tenth row was looked at";
}

TEST_F(EncoderBFloat16Test, HeadsMayShareKeys) {
  AttentionProblem p = problem({50, 97});
  p.heads = 6;
  const std::vector<float> got = run(p, Isa::kAvx512Bf16, "cpu");
  p.kv_dtype = DType::kFloat32;
  EXPECT_LT(largest_difference(got, run(p, Isa::kAvx512Bf16, "reference", true)), 2 * kUnit + 1e-4);
}

// A sequence's bits are the same alone and beside others, wherever its rows fall into chunks.
TEST_F(EncoderBFloat16Test, CompanyIsNotSeen) {
  for (const BiasForm bias : {BiasForm::kNone, BiasForm::kT5}) {
    AttentionProblem together = problem({5, 49, 1, 131, 12});
    together.bias = bias;
    const std::vector<float> all = run(together, Isa::kAvx512Bf16, "cpu");
    size_t at = 0;
    for (const KeyOwner& owner : together.owners) {
      AttentionProblem alone = together;
      alone.owners = {owner};
      const std::vector<float> one = run(alone, Isa::kAvx512Bf16, "cpu");
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + static_cast<ptrdiff_t>(at))) << owner.keys;
      at += one.size();
    }
    EXPECT_EQ(at, all.size());
  }
}

TEST(EncoderBFloat16Levels, WithoutSuchProductsHaveFloat32) {
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Fp16, Isa::kAmx}) {
    if (isa > detect_isa()) continue;
    AttentionProblem p = problem({5, 130});
    const std::vector<float> got = run(p, isa, "cpu");
    p.kv_dtype = DType::kFloat32;
    EXPECT_EQ(got, run(p, isa, "cpu")) << isa_name(isa);
  }
}

}  // namespace
}  // namespace transept
