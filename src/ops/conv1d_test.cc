// Convolutions at every level present against the definition in double precision, with kernels, strides and paddings of
// Whisper's and Moonshine's front ends among others; and that their input is read where it lies.
#include "ops/conv1d.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ops/cpu_device.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using test_util::random_floats;

struct Conv {
  int64_t length, in, out;
  Conv1dShape shape;
  Activation activation = Activation::kNone;
};

constexpr Conv kConvs[] = {
    {40, 80, 48, {3, 1, 1}, Activation::kGelu},
    {41, 48, 48, {3, 2, 1}, Activation::kGelu},
    {2000, 1, 36, {127, 64, 0}, Activation::kTanh},
    {60, 36, 72, {7, 3, 0}, Activation::kGelu},
    {19, 72, 36, {3, 2, 0}, Activation::kGelu},
    {1, 5, 3, {3, 1, 1}},
    {2, 5, 3, {3, 2, 1}},
    {7, 4, 9, {7, 3, 0}},
    {30, 4, 9, {4, 5, 2}},
    {12, 3, 33, {1, 1, 0}},
};

class Conv1dTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, Conv1dTest, ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAmx),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

TEST_P(Conv1dTest, MatchesTheDefinition) {
  ThreadPool pool(2);
  Arena arena(size_t{4} << 20);
  CpuDevice device{pool, GetParam()};
  Context context{.device = device, .arena = arena};
  for (const Conv& conv : kConvs) {
    const int64_t kernel = conv.shape.kernel, rows = conv1d_output_length(conv.length, conv.shape);
    std::vector<float> x = random_floats(conv.length * conv.in, 1), w = random_floats(conv.out * conv.in * kernel, 2);
    std::vector<float> bias = random_floats(conv.out, 3), y = random_floats(rows * conv.out, 4), expected = y;
    const TensorView x_view(x.data(), DType::kFloat32, {conv.length, conv.in});
    const TensorView y_view(y.data(), DType::kFloat32, {rows, conv.out});
    const TensorView expected_view(expected.data(), DType::kFloat32, {rows, conv.out});
    Epilogue epilogue{.bias = bias.data(), .activation = conv.activation, .residual = expected_view};
    conv1d_reference(x_view, TensorView(w.data(), DType::kFloat32, {conv.out, conv.in, kernel}), conv.shape, epilogue,
                     expected_view);
    PackedMatrix packed(conv.out, kernel * conv.in);
    for (int64_t i = 0; i < conv.out; ++i) {
      std::vector<float> row;
      for (int64_t tap = 0; tap < kernel; ++tap) {
        for (int64_t c = 0; c < conv.in; ++c) row.push_back(w[static_cast<size_t>((i * conv.in + c) * kernel + tap)]);
      }
      packed.set_row(i, row);
    }
    const PaddedRows padded = padded_rows(context, conv.length, conv.in, conv.shape.padding);
    std::memcpy(padded.rows.f32(), x.data(), x.size() * sizeof(float));
    epilogue.residual = y_view;
    gemm(context, conv1d_windows(padded.whole, conv.shape), packed, epilogue, y_view);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(y[i], expected[i], 2e-6 + 4e-7 * static_cast<double>(packed.k()))
          << conv.length << " of " << conv.in << ", kernel " << kernel << " at " << i;
    }
  }
  EXPECT_EQ(arena.num_overflows(), 0);
}

TEST(Conv1dLengthTest, IsTorchsAndWhatItTakesTheOtherWayRound) {
  // torch.nn.Conv1d: floor((length + 2 padding - (kernel - 1) - 1) / stride + 1).
  EXPECT_EQ(conv1d_output_length(3000, {3, 1, 1}), 3000);
  EXPECT_EQ(conv1d_output_length(3000, {3, 2, 1}), 1500);
  EXPECT_EQ(conv1d_output_length(2999, {3, 2, 1}), 1500);
  EXPECT_EQ(conv1d_output_length(480000, {127, 64}), 7499);
  EXPECT_EQ(conv1d_output_length(126, {127, 64}), 0);
  EXPECT_EQ(conv1d_output_length(127, {127, 64}), 1);
  EXPECT_EQ(conv1d_output_length(0, {3, 1, 1}), 0);
  for (const Conv& conv : kConvs) {
    for (int64_t rows = 1; rows < 20; ++rows) {
      const int64_t length = conv1d_longest_input(rows, conv.shape);
      EXPECT_EQ(conv1d_output_length(length, conv.shape), rows);
      EXPECT_EQ(conv1d_output_length(length + 1, conv.shape), rows + 1);
    }
  }
}

TEST(ToTimeMajorTest, TurnsWhatIsWholeBlocksAndWhatIsNot) {
  ThreadPool pool(2);
  Arena arena(4096);
  CpuDevice device{pool};
  Context context{.device = device, .arena = arena};
  for (const auto& [channels, length] : {std::pair<int64_t, int64_t>{80, 3000}, {5, 7}, {1, 700}, {3, 1}}) {
    const std::vector<float> x = random_floats(channels * length, 5);
    std::vector<float> y(x.size());
    to_time_major(context, x, TensorView(y.data(), DType::kFloat32, {length, channels}));
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < length; ++t) {
        ASSERT_EQ(y[static_cast<size_t>(t * channels + c)], x[static_cast<size_t>(c * length + t)]);
      }
    }
  }
}

}  // namespace
}  // namespace transept
