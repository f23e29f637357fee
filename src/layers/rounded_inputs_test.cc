// Products whose inputs the checkpoint rounds: sources that round in different ways are divided, and are what each is
// alone; ranks that have a part of the inputs round them as the whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/folder_testing.h"
#include "base/random_values_testing.h"
#include "layers/linear.h"
#include "layers/pack_file.h"
#include "ops/cpu_device.h"
#include "weights/coded_matrix_testing.h"

namespace transept {
namespace {

using testing::CodedValues;
using ::testing::HasSubstr;
using testing::TestFolder;
using testing::TestTensor;

using Roundings = std::map<std::string, InputQuantization, std::less<>>;

constexpr int64_t kIn = 64, kRows = 5;
constexpr InputQuantization kByToken{.type = InputQuantization::Type::kInteger};
constexpr InputQuantization kStatic{.type = InputQuantization::Type::kInteger, .bits = 4, .scale = 0.25f};

// A format of codes that rounds the inputs of some matrices, by name.
class RoundingReader final : public MatrixReader {
 public:
  RoundingReader(const WeightFormat& format, Roundings roundings)
      : matrices_(format), roundings_(std::move(roundings)) {}
  bool has(const WeightMap& weights, std::string_view name) const override { return matrices_.has(weights, name); }
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override {
    return matrices_.open(weights, name, n, k, use);
  }
  StatusOr<InputQuantization> inputs_of(WeightMap& /*weights*/, std::string_view name, int64_t /*k*/) const override {
    const auto found = roundings_.find(name);
    return found == roundings_.end() ? InputQuantization() : found->second;
  }

 private:
  testing::TestReader matrices_;
  Roundings roundings_;
};

std::vector<float> draw(int64_t count, uint32_t seed) { return testing::random_normals(count, seed); }

class RoundedInputs : public ::testing::Test {
 protected:
  // q, k and o of codes, v of floats; each with a bias.
  RoundedInputs() {
    std::vector<TestTensor> tensors;
    for (const auto& [name, n] : {std::pair{"q", 40}, {"k", 33}, {"o", 21}}) {
      CodedValues values{name, n, kIn, kInt8Format};
      values.draw(static_cast<uint32_t>(n));
      values.add_to(tensors);
    }
    tensors.push_back({"v", "F32", {26, kIn}, testing::bytes_of(draw(26 * kIn, 4))});
    for (const auto& [name, n] : {std::pair{"q", 40}, {"k", 33}, {"v", 26}, {"o", 21}}) {
      tensors.push_back({str_cat(name, ".bias"), "F32", {n}, testing::bytes_of(draw(n, 5))});
    }
    folder_.write("model.safetensors", testing::safetensors_bytes(tensors));
  }

  std::unique_ptr<WeightMap> open(const Roundings& roundings) const {
    auto weights = std::move(WeightMap::open(folder_.path())).value();
    weights->set_matrix_reader(std::make_unique<RoundingReader>(kInt8Format, roundings));
    return weights;
  }

  StatusOr<Linear> load(WeightMap& weights, const LinearSpec& spec, const Ranks& ranks = {}) {
    PackOptions packing(threads_, std::nullopt, &report_);
    packing.ranks = ranks;
    return Linear::load(weights, spec, packing);
  }

  // [rows, out] of x [rows, in]: by ReLU, on top of a residual if it is not empty; with statistics of whole rows as it
  // is.
  std::vector<float> product(const Linear& linear, std::vector<float> x, std::vector<float> residual = {},
                             const RowStatistics* given = nullptr) {
    std::vector<float> y(static_cast<size_t>(kRows * linear.out_features()));
    Epilogue epilogue{.activation = given == nullptr ? Activation::kRelu : Activation::kNone};
    if (!residual.empty()) {
      epilogue.residual = TensorView(residual.data(), DType::kFloat32, {kRows, linear.out_features()});
    }
    linear.forward(context_, {TensorView(x.data(), DType::kFloat32, {kRows, linear.in_features()}), given}, epilogue,
                   TensorView(y.data(), DType::kFloat32, {kRows, linear.out_features()}));
    return y;
  }

  TestFolder folder_;
  ThreadPool threads_{2};
  Arena arena_{size_t{1} << 20};
  CpuDevice device_{threads_};
  Context context_{device_, arena_};
  std::vector<PackedLayer> report_;
  std::vector<float> x_ = draw(kRows * kIn, 20);
};

TEST_F(RoundedInputs, SourcesThatDifferAreEachWhatItIsAlone) {
  const LinearSource q{"q", "q.bias", 40}, k{"k", "k.bias", 33}, v{"v", "v.bias", 26}, o{"o", "o.bias", 21};
  for (const Roundings& roundings : {Roundings{{"q", kByToken}, {"k", kStatic}, {"o", kStatic}},
                                     Roundings{{"k", kByToken}, {"o", kByToken}}, Roundings{{"q", kStatic}}}) {
    const auto weights = open(roundings);
    const LinearSpec fused{{q, k, o, v}, kIn};
    const Linear whole = load(*weights, fused).value();
    ASSERT_EQ(whole.out_features(), 120);
    EXPECT_EQ(whole.in_features(), kIn);
    const std::vector<float> residual = draw(kRows * 120, 9);
    const std::vector<float> y = product(whole, x_, residual);
    int64_t first = 0;
    for (const LinearSource& source : fused.sources) {
      const std::vector<float> alone = product(load(*weights, {{source}, kIn}).value(), x_);
      for (int64_t i = 0; i < std::ssize(alone); ++i) {
        const int64_t at = i / source.out_features * 120 + first + i % source.out_features;
        ASSERT_EQ(y[static_cast<size_t>(at)], alone[static_cast<size_t>(i)] + residual[static_cast<size_t>(at)])
            << source.weight << " " << i;
      }
      first += source.out_features;
    }
    EXPECT_NE(y, product(load(*open({}), fused).value(), x_, residual));
  }
}

TEST_F(RoundedInputs, EachDivisionIsInTheReport) {
  const auto weights = open({{"q", kByToken}, {"k", kByToken}, {"o", kStatic}});
  const LinearSpec fused{{{"q", "", 40}, {"k", "", 33}, {"v", "", 26}, {"o", "", 21}}, kIn};
  ASSERT_TRUE(load(*weights, fused).ok());
  ASSERT_EQ(report_.size(), 3u);
  EXPECT_EQ(report_[0].inputs.size(), 2u);
  EXPECT_TRUE(report_[1].inputs.empty());
  ASSERT_EQ(report_[2].inputs.size(), 1u);
  EXPECT_EQ(report_[2].inputs.front(), std::pair(std::string("o"), kStatic));
  EXPECT_THAT(storage_text(report_),
              HasSubstr("; inputs rounded as the checkpoint says: int4-tensor in 1 matrix, int8-token in 2 matrices"));
}

TEST_F(RoundedInputs, APackedFolderKnowsThemAndCanLeaveThemOut) {
  const LinearSpec fused{{{"q", "", 40}, {"k", "", 33}, {"v", "", 26}, {"o", "", 21}}, kIn};
  const auto original = open({{"q", kByToken}, {"k", kByToken}, {"o", kStatic}});
  const Linear linear = load(*original, fused).value();
  const TestFolder folder;
  const Status written =
      write_pack_file(folder.path() + "/model.safetensors", *original, report_, std::nullopt, [] { return true; });
  ASSERT_TRUE(written.ok()) << written;
  const auto packed = std::move(WeightMap::open(folder.path())).value();
  EXPECT_EQ(product(load(*packed, fused).value(), x_), product(linear, x_));
  packed->set_rounds_inputs(false);
  EXPECT_EQ(product(load(*packed, fused).value(), x_), product(load(*open({}), fused).value(), x_));
}

TEST_F(RoundedInputs, RanksRoundTheirPartAsTheWhole) {
  std::vector<RowStatistics> given(kRows);
  row_statistics(context_, TensorView(x_.data(), DType::kFloat32, {kRows, kIn}), given);
  InputQuantization groups = kByToken;
  groups.group = 16;
  for (const InputQuantization& inputs : {kByToken, kStatic, groups}) {
    const auto weights = open({{"q", inputs}});
    const LinearSpec spec{{{"q", "", 40}}, kIn, LayerInputs::kUsual, Split::kInputs, 16};
    const std::vector<float> expected = product(load(*weights, spec).value(), x_, {}, given.data());
    std::vector<float> sum(expected.size());
    for (const int32_t rank : {0, 1}) {
      std::vector<float> part;
      for (int64_t i = 0; i < kRows; ++i) {
        const auto begin = x_.begin() + i * kIn + rank * kIn / 2;
        part.insert(part.end(), begin, begin + kIn / 2);
      }
      const std::vector<float> y = product(load(*weights, spec, {rank, 2}).value(), part, {}, given.data());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += y[i];
    }
    // Sums of 64 products of size 10, in another order. A scale of the part moves them by more than 0.05.
    for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], expected[i], 1e-3) << input_quantization_name(inputs);
  }
  const LinearSpec cut{{{"q", "", 40}}, kIn, LayerInputs::kUsual, Split::kInputs, 8};
  EXPECT_TRUE(load(*open({{"q", groups}}), cut, {0, 2}).ok());
  const StatusOr<Linear> refused = load(*open({{"q", groups}}), cut, {1, 3});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("\"q\": groups of 16 inputs are divided among ranks"));
}

}  // namespace
}  // namespace transept
