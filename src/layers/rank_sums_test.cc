// Proves that a layer whose inputs ranks divide is one rank's to the bit, on every rank: with ranks as threads over the
// memory that processes share, of every storage, at every level.
#include "layers/rank_sums.h"

#include <gtest/gtest.h>

#include <string>

#include "base/folder_testing.h"
#include "base/random_values_testing.h"
#include "comm/ranks_testing.h"
#include "layers/linear.h"
#include "ops/cpu_device.h"
#include "weights/coded_matrix_testing.h"
#include "weights/safetensors_testing.h"

namespace transept {
namespace {

using testing::TestFolder;
using testing::TestTensor;

constexpr int64_t kIn = 512, kOut = 70, kRows = 23;
// Three rows at a time, of which each exchange carries two sums.
constexpr size_t kOutboxBytes = 3 * 2 * 96 * 4;
constexpr std::optional<WeightFormat> kStorages[] = {std::nullopt, kBFloat16Format, kFloat16Format, kInt8Format,
                                                     int4_format(32)};

std::vector<float> random_values(int64_t count, uint32_t seed, float size) {
  return testing::random_normals(count, seed, size);
}

// Rounds the inputs of every matrix in one way.
class RoundingRanksReader final : public MatrixReader {
 public:
  explicit RoundingRanksReader(const InputQuantization& inputs) : inputs_(inputs) {}
  bool has(const WeightMap& /*weights*/, std::string_view name) const override { return name == "m"; }
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view /*name*/, int64_t n, int64_t k,
                                               WeightUse use) const override {
    return weights.matrix("m.weight", {n, k}, use);
  }
  StatusOr<InputQuantization> inputs_of(WeightMap& /*weights*/, std::string_view /*name*/,
                                        int64_t /*k*/) const override {
    return inputs_;
  }

 private:
  InputQuantization inputs_;
};

class DividedLayer : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > detect_isa()) GTEST_SKIP() << isa_name(GetParam()) << " is not present on this processor";
    folder_.write("model.safetensors",
                  testing::safetensors_bytes(
                      {{"m.weight", "F32", {kOut, kIn}, testing::bytes_of(random_values(kOut * kIn, 1, 0.3f))},
                       {"m.bias", "F32", {kOut}, testing::bytes_of(random_values(kOut, 2, 1))}}));
    // In every second row a few entries dwarf the others.
    x_ = random_values(kRows * kIn, 3, 1);
    for (int64_t i = 0; i < kRows * kIn; ++i) {
      if (i / kIn % 2 == 0 && i % 37 != 0) x_[static_cast<size_t>(i)] *= 0.01f;
    }
    residual_ = random_values(kRows * kOut, 4, 1);
  }

  struct Way {
    std::optional<WeightFormat> storage = {};
    LayerInputs inputs = LayerInputs::kUsual;
    InputQuantization rounding = {};
    const testing::CodedValues* codes = nullptr;  // instead of the folder's matrix
  };

  // What a rank has for y; `ranks` null: one alone. y is the residual, too.
  std::vector<float> run(const Way& way, Communicator* ranks) {
    ThreadPool threads(2);
    Arena arena(size_t{1} << 20);
    CpuDevice device{threads, GetParam()};
    Context context{.device = device, .arena = arena, .ranks = ranks};
    PackOptions packing(threads, way.storage, nullptr);
    if (ranks != nullptr) packing.ranks = {ranks->rank(), ranks->size()};
    const TestFolder coded_folder;
    if (way.codes != nullptr) {
      std::vector<TestTensor> tensors = {{"m.bias", "F32", {kOut}, testing::bytes_of(random_values(kOut, 2, 1))}};
      way.codes->add_to(tensors);
      coded_folder.write("model.safetensors", testing::safetensors_bytes(tensors));
    }
    const std::string folder = way.codes != nullptr ? coded_folder.path() : folder_.path();
    const std::unique_ptr<WeightMap> weights = std::move(WeightMap::open(folder)).value();
    if (way.codes != nullptr) weights->set_matrix_reader(std::make_unique<testing::TestReader>(way.codes->format));
    if (way.rounding.rounds()) weights->set_matrix_reader(std::make_unique<RoundingRanksReader>(way.rounding));
    const LinearSpec spec{{{.weight = way.rounding.rounds() || way.codes != nullptr ? "m" : "m.weight",
                            .bias = "m.bias",
                            .out_features = kOut}},
                          kIn,
                          way.inputs,
                          Split::kInputs,
                          16};
    const Linear linear = std::move(Linear::load(*weights, spec, packing)).value();
    const IndexRange own = share_of(kIn, 16, packing.ranks);
    std::vector<float> x = x_, y = residual_;
    const TensorView rows(x.data(), DType::kFloat32, {kRows, kIn}), out(y.data(), DType::kFloat32, {kRows, kOut});
    linear.forward(context, rows.columns(own.begin, own.end), {.residual = out}, out);
    EXPECT_EQ(arena.num_overflows(), 0);
    return y;
  }

  void expect_the_bits_of_one(const Way& way) {
    const std::vector<float> whole = run(way, nullptr);
    for (const int num_ranks : {2, 4, 8}) {
      const auto group = testing::make_group(num_ranks, kOutboxBytes);
      testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
        const std::vector<float> y = run(way, &ranks);
        EXPECT_EQ(y, whole) << "rank " << ranks.rank() << " of " << num_ranks;
        EXPECT_TRUE(ranks.barrier().ok());
      });
    }
  }

  TestFolder folder_;
  std::vector<float> x_, residual_;
};

INSTANTIATE_TEST_SUITE_P(Levels, DividedLayer,
                         ::testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16,
                                           Isa::kAvx512Fp16, Isa::kAmx),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

TEST_P(DividedLayer, IsTheWholeToTheBitInEveryStorage) {
  for (const auto& storage : kStorages) {
    for (const LayerInputs inputs : {LayerInputs::kUsual, LayerInputs::kConvolution, LayerInputs::kOutliers}) {
      SCOPED_TRACE(storage.has_value() ? weight_format_name(*storage) : "as stored");
      expect_the_bits_of_one({storage, inputs});
    }
  }
}

TEST_P(DividedLayer, RoundsItsInputsAsTheWhole) {
  InputQuantization by_row{.type = InputQuantization::Type::kInteger};
  InputQuantization with_zeros = by_row, all_rows = by_row, groups = by_row, floats = by_row;
  with_zeros.is_symmetric = false;
  all_rows.scale = 0.02f;
  groups.group = 64;
  floats.type = InputQuantization::Type::kFloat8;
  for (const InputQuantization& rounding : {by_row, with_zeros, all_rows, groups, floats}) {
    for (const auto& storage : {std::optional<WeightFormat>(), {kInt8Format}}) {
      SCOPED_TRACE(input_quantization_name(rounding) + (storage.has_value() ? " int8" : ""));
      expect_the_bits_of_one({storage, LayerInputs::kOutliers, rounding});
    }
  }
}

// Groups of 256 inputs are divided among 4 ranks, and permuted ones among 2.
TEST_P(DividedLayer, FourBitCodesAreDividedInsideTheirGroups) {
  for (const auto& [format, is_permuted] :
       {std::pair(int4_format(32), false), std::pair(int4_format(256, true), false), std::pair(int4_format(0), false),
        std::pair(int4_format(32, true), true), std::pair(float4_format(128), false)}) {
    testing::CodedValues values{"m", kOut, kIn, format, is_permuted};
    values.draw(7);
    SCOPED_TRACE(weight_format_name(format) + (is_permuted ? " permuted" : ""));
    expect_the_bits_of_one({.codes = &values});
  }
  testing::CodedValues values{"m", kOut, kIn, int4_format(32, true)};
  values.draw(8);
  expect_the_bits_of_one({.storage = int4_format(32), .codes = &values});
}

// A rank that is gone fails the group, and no other waits for it or stops.
TEST(RankSums, AFailedGroupEndsEveryProduct) {
  const auto group = testing::make_group(2, kOutboxBytes);
  testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
    if (ranks.rank() == 1) return ranks.fail(resource_exhausted("rank 1 is gone"));
    ThreadPool threads(1);
    Arena arena(size_t{1} << 20);
    CpuDevice device{threads};
    Context context{.device = device, .arena = arena, .ranks = &ranks};
    for (const WeightFormat& format : {kFloat32Format, kInt8Format}) {
      const PackedMatrix w(kOut, 64, {format});
      std::vector<float> x(2 * 64, 1.0f), y(2 * kOut);
      gemm_over_ranks(context, TensorView(x.data(), DType::kFloat32, {2, 64}), w, 1, {},
                      TensorView(y.data(), DType::kFloat32, {2, kOut}));
    }
    EXPECT_EQ(error_message(ranks.barrier()), "rank 1 is gone");
  });
}

TEST(RankSums, ADryRunTakesTheSameMemoryAndAsksNoRank) {
  const auto group = testing::make_group(2, kOutboxBytes);
  testing::run_ranks(*group, testing::kPatient, [&](Communicator& ranks) {
    ThreadPool threads(1);
    for (const InputRounding inputs :
         {InputRounding::kUsual, InputRounding::kWide, InputRounding::kOutliers, InputRounding::kGroups}) {
      const bool is_int4 = inputs == InputRounding::kGroups;
      const PackedMatrix w(kOut, 64, {is_int4 ? int4_format(32) : kInt8Format, inputs});
      std::vector<float> x(3 * 64, 0.001f), y(3 * kOut);
      for (size_t i = 0; i < x.size(); i += 64) x[i] = 1, x[i + 1] = -1;  // wide, which takes the most memory
      const TensorView rows(x.data(), DType::kFloat32, {3, 64}), out(y.data(), DType::kFloat32, {3, kOut});
      Arena measuring = Arena::measuring(), arena(size_t{1} << 20);
      CpuDevice device{threads};
      Context dry{.device = device, .arena = measuring, .dry_run = true, .ranks = &ranks};
      Context context{.device = device, .arena = arena, .ranks = &ranks};
      if (ranks.rank() == 0) gemm_over_ranks(dry, rows, w, 2, {}, out);
      gemm_over_ranks(context, rows, w, 2, {}, out);
      if (ranks.rank() == 0) {
        EXPECT_EQ(arena.high_water_bytes(), measuring.high_water_bytes());
      }
    }
    EXPECT_TRUE(ranks.barrier().ok());
  });
}

}  // namespace
}  // namespace transept
