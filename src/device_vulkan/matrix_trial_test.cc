// The start's trial of matrices: what it decides, and what it says. Where a device breaks rows, is slow or has none, a
// test stands in for it; the trial itself needs a device with matrices.
#include "device_vulkan/matrix_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "device_vulkan/vulkan_model_device.h"
#include "device_vulkan/vulkan_ops.h"
#include "device_vulkan/vulkan_rig_testing.h"
#include "ops/gemm.h"
#include "ops/ops_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing::TimelineTest;

class VulkanTrialTest : public TimelineTest {
 protected:
  void SetUp() override {
    TimelineTest::SetUp();
    if (IsSkipped()) return;
    const VulkanDeviceInfo& info = rig_->shared_device()->info();
    if (!info.half_tile.has_value() || !info.int8_tile.has_value()) {
      ASSERT_EQ(std::getenv("TRANSEPT_TEST_MATRICES"), nullptr) << info.no_matrices;
      GTEST_SKIP() << "the device has no matrices: " << info.no_matrices;
    }
    half_rows_ = info.half_tile->m;
    int8_rows_ = info.int8_tile->m;
    timeline_ = make();
  }
  void TearDown() override {
    timeline_.reset();
    TimelineTest::TearDown();
  }

  StatusOr<MatrixForms> try_them(const MatrixOptions& options, const ModelProducts& products) {
    report_.clear();
    return try_matrices(*timeline_, products, options, report_);
  }
  // A clock by which matrices take so long and shader cores 1.
  std::function<double()> clock(double with) {
    // Two readings around each of the kinds of forms; the first does not count, the second is no short one.
    return [this, with] {
      const int reading = num_readings_++;
      const bool by_matrices = reading / 4 % 2 == 0, ends = reading % 2 == 1;
      return ends ? (by_matrices ? with : 1.0) : 0.0;
    };
  }

  const ModelProducts all_{{kFloat16Format, InputRounding::kUsual, 40, 70},
                           {kFloat16Format, InputRounding::kUsual, 64, 128},
                           {kBFloat16Format, InputRounding::kUsual, 64, 70},
                           {kInt8Format, InputRounding::kUsual, 100, 96},
                           {kInt8Format, InputRounding::kOutliers, 32, 96}};
  std::unique_ptr<VulkanTimeline> timeline_;
  std::vector<std::string> report_;
  uint32_t half_rows_ = 0, int8_rows_ = 0;
  int num_readings_ = 0;
};

TEST_F(VulkanTrialTest, RowsThatAreKeptApartAreTaken) {
  const auto forms = try_them({.choice = MatrixChoice::kOn}, all_);
  ASSERT_TRUE(forms.ok()) << forms.status();
  EXPECT_EQ(*forms, (MatrixForms{half_rows_, int8_rows_, false}));
  ASSERT_EQ(report_.size(), 2u);
  EXPECT_THAT(report_[0], StartsWith("matrices: float16 "));
  EXPECT_THAT(report_[0], HasSubstr(", inputs in two halves"));
  EXPECT_THAT(report_[1], StartsWith("matrices: int8 "));
  const auto rounded = try_them({.choice = MatrixChoice::kOn, .rounds_inputs = true}, all_);
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  EXPECT_TRUE(rounded->rounds_inputs);
  EXPECT_THAT(report_[0], HasSubstr(", inputs rounded to float16"));
}

TEST_F(VulkanTrialTest, TheFasterFormIsTaken) {
  auto forms = try_them({.now = clock(0.5)}, all_);
  ASSERT_TRUE(forms.ok()) << forms.status();
  EXPECT_EQ(*forms, (MatrixForms{half_rows_, int8_rows_, false}));
  EXPECT_THAT(report_[0], HasSubstr("1500 ms over this model's products, by shader cores 3000 ms"));
  num_readings_ = 0;
  forms = try_them({.now = clock(1.5)}, all_);
  ASSERT_TRUE(forms.ok()) << forms.status();
  EXPECT_EQ(*forms, MatrixForms());
  EXPECT_THAT(report_, ElementsAre(HasSubstr(": off: slower: 4500 ms"), HasSubstr(": off: slower: 3000 ms")));
}

// One bit of one row among 13 others: no such row is served by matrices.
TEST_F(VulkanTrialTest, ADeviceThatMixesRowsHasItsMatricesOff) {
  MatrixOptions options{.now = clock(0.5), .on_rows = [](uint32_t rows, std::span<float> y) {
                          if (rows == 14) y.back() = std::nextafter(y.back(), 1e30f);
                        }};
  auto forms = try_them(options, all_);
  ASSERT_TRUE(forms.ok()) << forms.status();
  EXPECT_EQ(*forms, MatrixForms());
  EXPECT_THAT(report_, ElementsAre(HasSubstr(": off: a row among 14 has other bits than alone, with "),
                                   HasSubstr(": off: a row among 14 has other bits than alone, with 96 inputs")));
  options.choice = MatrixChoice::kOn;
  forms = try_them(options, all_);
  ASSERT_FALSE(forms.ok());
  EXPECT_THAT(error_message(forms.status()), StartsWith("--device-matrices on: float16 "));
}

TEST_F(VulkanTrialTest, WhatTheModelHasNotIsNotTried) {
  EXPECT_EQ(try_them({.choice = MatrixChoice::kOff}, all_).value(), MatrixForms());
  EXPECT_THAT(report_, IsEmpty());
  EXPECT_EQ(try_them({.choice = MatrixChoice::kOn}, {}).value(), MatrixForms());
  EXPECT_THAT(report_, IsEmpty());
  const ModelProducts int8{{kInt8Format, InputRounding::kUsual, 32, 64}};
  EXPECT_EQ(try_them({.choice = MatrixChoice::kOn}, int8).value(), (MatrixForms{0, int8_rows_, false}));
  EXPECT_THAT(error_message(try_them({.rounds_inputs = true}, int8).status()), HasSubstr("--dtype float16"));
}

// A product of a model: the dry run notes it, start-up chooses, and the op is made so.
TEST_F(VulkanTrialTest, AModelsProductsAreMadeAsChosen) {
  constexpr int64_t kRows = 5, kInputs = 96, kOutputs = 40;
  std::vector<float> x = test_util::random_floats(kRows * kInputs, 1),
                     w = test_util::random_floats(kOutputs * kInputs, 2);
  for (const WeightFormat& format : {kFloat16Format, kBFloat16Format, kInt8Format, kFloat32Format}) {
    SCOPED_TRACE(weight_format_name(format));
    std::vector<std::vector<float>> found;
    for (const MatrixChoice choice : {MatrixChoice::kOff, MatrixChoice::kOn}) {
      const auto space = VulkanSpace::create(make(), {.choice = choice});
      ThreadPool pool(1);
      VulkanModelDevice device(space, vulkan_op_table(), pool, detect_isa());
      const PackedMatrix there = test_util::pack(w, kOutputs, kInputs, {format}).placed(*space);
      const DeviceBuffer in = space->allocate(x.size() * 4, MemoryUse::kSteps);
      const DeviceBuffer out = space->allocate(kRows * kOutputs * 4, MemoryUse::kSteps);
      space->copy_in(in.data(), x.data(), x.size() * 4);
      const TensorView rows(in.data(), DType::kFloat32, {kRows, kInputs}),
          y(out.data(), DType::kFloat32, {kRows, kOutputs});
      Arena arena(size_t{1} << 18, *space), measuring = Arena::measuring();
      Context dry{.device = device, .arena = measuring, .dry_run = true};
      gemm(dry, rows, there, {}, y);
      ASSERT_TRUE(device.choose_forms(report_).ok());
      const bool by_matrices = choice == MatrixChoice::kOn && format != kFloat32Format;
      EXPECT_EQ(device.tiling_of(there).rows > 0, by_matrices);
      Context context{.device = device, .arena = arena};
      gemm(context, rows, there, {}, y);
      found.emplace_back(static_cast<size_t>(kRows * kOutputs));
      space->copy_out(found.back().data(), out.data(), found.back().size() * 4);
      ASSERT_TRUE(space->status().ok()) << space->status();
    }
    for (size_t i = 0; i < found[0].size(); ++i) ASSERT_NEAR(found[1][i], found[0][i], 1e-4) << i;
    const bool has_own_bits = format == kFloat16Format || format == kBFloat16Format;
    EXPECT_EQ(found[1] != found[0], has_own_bits) << "int8 has the same ones";
  }
}

// A matrix with numbers that float16 cannot hold stays with shader cores, and the report counts it.
TEST_F(VulkanTrialTest, BFloat16OfAllSizesStaysWithShaderCores) {
  const auto space = VulkanSpace::create(make(), {.choice = MatrixChoice::kOn});
  ThreadPool pool(1);
  VulkanModelDevice device(space, vulkan_op_table(), pool, detect_isa());
  std::vector<float> w = test_util::random_floats(40 * 96, 2);
  const PackedMatrix fits = test_util::pack(w, 40, 96, {kBFloat16Format}).placed(*space);
  w[77] = 1e-30f;
  const PackedMatrix does_not = test_util::pack(w, 40, 96, {kBFloat16Format}).placed(*space);
  device.note_product(fits);
  device.note_product(does_not);
  ASSERT_TRUE(device.choose_forms(report_).ok());
  EXPECT_EQ(device.tiling_of(fits).rows, half_rows_);
  EXPECT_EQ(device.tiling_of(does_not).rows, 0u);
  ASSERT_EQ(report_.size(), 2u);
  EXPECT_THAT(report_[1], HasSubstr("1 of 2 matrices"));
}

}  // namespace
}  // namespace transept
