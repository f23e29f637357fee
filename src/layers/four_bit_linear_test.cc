// Proves that 4-bit codes of a checkpoint stay 4-bit codes where they can, with the bits of the numbers that they mean:
// in fused products, in packed folders, beside floats, and with --quantization int4.
#include "layers/linear_testing.h"

namespace transept {
namespace {

using testing::CodedValues;
using testing::floats;
using testing::kHead;
using testing::kIn;
using testing::kKv;
using testing::kQ;
using testing::kRows;
using testing::LinearTest;
using testing::name_of;
using testing::PackedLinear;
using testing::random_values;
using testing::TestFolder;
using testing::TestTensor;

// Several matrices of one format.
class FourBitLinear : public LinearTest {
 protected:
  // Opens a file of what the matrices mean, and one of their codes.
  void write_both(const std::vector<CodedValues>& all) {
    std::vector<TestTensor> coded, widened;
    for (const CodedValues& values : all) {
      values.add_to(coded);
      std::vector<float> meant;
      for (int64_t i = 0; i < values.n * values.k; ++i) {
        meant.push_back(static_cast<float>(values.weight(i / values.k, i % values.k)));
      }
      widened.push_back({values.name, "F32", {values.n, values.k}, testing::bytes_of(meant)});
    }
    write(coded_folder_, coded);
    write(widened_folder_, widened);
    widened_ = open(widened_folder_.path());
    coded_ = open(coded_folder_.path());
    coded_->set_matrix_reader(std::make_unique<testing::TestReader>(all.front().format));
  }

  static CodedValues drawn(const std::string& name, int64_t n, const WeightFormat& format, bool is_permuted,
                           uint32_t seed) {
    CodedValues values{name, n, kIn, format, is_permuted};
    values.draw(seed);
    return values;
  }

  static LinearSpec qkv_codes(Split split = Split::kNone) {
    return {{{"q", "", kQ}, {"k", "", kKv}, {"v", "", kKv}}, kIn, LayerInputs::kUsual, split, kHead};
  }

  void write_qkv(const WeightFormat& format, bool is_permuted) {
    write_both({drawn("q", kQ, format, is_permuted, 1), drawn("k", kKv, format, is_permuted, 2),
                drawn("v", kKv, format, is_permuted, 3)});
  }

  std::vector<WeightFormat> kept() const {
    std::vector<WeightFormat> formats;
    for (const PackedLayer& layer : report_) formats.push_back(layer.format.weights);
    return formats;
  }

  TestFolder coded_folder_, widened_folder_;
  std::unique_ptr<WeightMap> coded_, widened_;
};

TEST_F(FourBitLinear, CodesThatMeanTheSameAreOneProduct) {
  for (const WeightFormat& format : {int4_format(32), int4_format(32, true), int4_format(0)}) {
    write_qkv(format, false);
    report_.clear();
    const std::vector<float> y = product(load(*coded_, qkv_codes(), std::nullopt), x_);
    EXPECT_EQ(kept(), std::vector<WeightFormat>{format});
    EXPECT_EQ(y, product(load(*widened_, qkv_codes(), std::nullopt), x_)) << weight_format_name(format);
  }
}

// Every source has an order of inputs, or a table, of its own: three products.
TEST_F(FourBitLinear, SourcesWhoseCodesMeanDifferentThingsFallApart) {
  for (const bool is_permuted : {true, false}) {
    const WeightFormat format = is_permuted ? int4_format(32, true) : float4_format(32);
    write_qkv(format, is_permuted);
    for (const Split split : {Split::kNone, Split::kOutputs}) {
      for (const Ranks& ranks : {Ranks{}, Ranks{1, 2}}) {
        report_.clear();
        const std::vector<float> y = product(load(*coded_, qkv_codes(split), std::nullopt, ranks), x_);
        EXPECT_EQ(kept(), (std::vector<WeightFormat>{format, format, format}));
        EXPECT_EQ(y, product(load(*widened_, qkv_codes(split), std::nullopt, ranks), x_));
      }
    }
    // In int8, and in numbers, they are one.
    report_.clear();
    EXPECT_EQ(product(load(*coded_, qkv_codes(), kInt8Format), x_),
              product(load(*widened_, qkv_codes(), kInt8Format), x_));
    EXPECT_EQ(kept(), (std::vector<WeightFormat>{kInt8Format, kInt8Format}));
  }
}

TEST_F(FourBitLinear, OnlyTheFirstTwoShareTheirGroups) {
  CodedValues q = drawn("q", kQ, int4_format(32), true, 1), k = drawn("k", kKv, int4_format(32), true, 2);
  k.groups = q.groups;
  write_both({q, k, drawn("v", kKv, int4_format(32), true, 3)});
  const std::vector<float> y = product(load(*coded_, qkv_codes(), std::nullopt), x_);
  ASSERT_EQ(report_.size(), 2u);
  EXPECT_EQ(report_[0].n, kQ + kKv);
  EXPECT_EQ(y, product(load(*widened_, qkv_codes(), std::nullopt), x_));
}

// Beside a matrix of floats codes are numbers.
TEST_F(FourBitLinear, MixedWithFloatsTheyAreWidened) {
  for (const bool is_permuted : {false, true}) {
    std::vector<TestTensor> tensors, numbers;
    const CodedValues q = drawn("q", kQ, int4_format(32), is_permuted, 1);
    q.add_to(tensors);
    std::vector<float> meant;
    for (int64_t i = 0; i < kQ * kIn; ++i) meant.push_back(static_cast<float>(q.weight(i / kIn, i % kIn)));
    numbers.push_back({"q", "F32", {kQ, kIn}, testing::bytes_of(meant)});
    for (std::vector<TestTensor>* file : {&tensors, &numbers}) {
      file->push_back(floats("k", {kKv, kIn}, 4));
      file->push_back(floats("v", {kKv, kIn}, 5));
    }
    write(coded_folder_, tensors);
    write(widened_folder_, numbers);
    const auto weights = open(coded_folder_.path());
    weights->set_matrix_reader(std::make_unique<testing::TestReader>(q.format));
    report_.clear();
    const std::vector<float> y = product(load(*weights, qkv_codes(), std::nullopt), x_);
    EXPECT_EQ(kept(), std::vector<WeightFormat>{kFloat32Format});
    EXPECT_EQ(y, product(load(*open(widened_folder_.path()), qkv_codes(), std::nullopt), x_));
  }
}

// Inputs are rounded in groups where they lie in order; other codes are multiplied with inputs as they are.
TEST_F(FourBitLinear, Int4ByNameKeepsTheFilesCodes) {
  const LinearSpec spec{{{"q", "", kQ}}, kIn};
  for (const bool is_permuted : {false, true}) {
    const WeightFormat format = int4_format(32, true);
    write_both({drawn("q", kQ, format, is_permuted, 1)});
    report_.clear();
    const std::vector<float> y = product(load(*coded_, spec, int4_format(64)), x_);
    const std::vector<float> exact = product(load(*widened_, spec, std::nullopt), x_);
    const PackedFormat expected{format, is_permuted ? InputRounding::kUsual : InputRounding::kGroups};
    EXPECT_EQ(report_[0].format, expected);
    EXPECT_EQ(y == exact, is_permuted);
    double error = 0, size = 0;
    for (size_t i = 0; i < y.size(); ++i) error += std::pow(y[i] - exact[i], 2), size += std::pow(exact[i], 2);
    EXPECT_LT(std::sqrt(error / size), 0.01);
  }
}

TEST_F(PackedLinear, FourBitsAreMappedAsTheyAre) {
  for (const CodedValues& values : testing::coded_examples("m", kQ, kIn)) {
    if (!values.format.is_nibbles()) continue;
    const TestFolder coded_folder, folder;
    std::vector<TestTensor> tensors;
    values.add_to(tensors);
    write(coded_folder, tensors);
    const auto coded = open(coded_folder.path());
    coded->set_matrix_reader(std::make_unique<testing::TestReader>(values.format));
    const LinearSpec spec{{{"m", "", kQ}}, kIn, LayerInputs::kUsual, Split::kInputs, 8};
    const auto packed = pack(folder, *coded, spec, std::nullopt);
    for (const auto& storage : {std::optional<WeightFormat>(), {kFloat32Format}, {kInt8Format}, {int4_format(32)}}) {
      for (const Ranks& ranks : {Ranks{}, Ranks{1, 2}, Ranks{3, 4}}) {
        // Groups of rounded inputs stay together.
        if (storage == int4_format(32) && ranks.count > 1) continue;
        const Linear from_file = load(*packed, spec, storage, ranks);
        const bool is_kept = !storage.has_value() || storage->is_nibbles();
        EXPECT_EQ(report_.back().is_mapped, is_kept && ranks.count == 1);
        EXPECT_EQ(report_.back().format.weights.is_nibbles(), is_kept);
        const Linear from_original = load(*coded, spec, storage, ranks);
        const std::vector<float> x = random_values(kRows * from_file.in_features(), 30, 1);
        EXPECT_EQ(product(from_file, x), product(from_original, x))
            << weight_format_name(values.format) << " as " << name_of(storage) << ", rank " << ranks.rank;
      }
    }
  }
}

TEST_F(PackedLinear, ProductsThatFellApartStayApart) {
  std::vector<TestTensor> tensors;
  for (const auto& [name, n] : {std::pair("q", kQ), std::pair("k", kKv), std::pair("v", kKv)}) {
    CodedValues values{name, n, kIn, int4_format(32), true};
    values.draw(static_cast<uint32_t>(*name));
    values.add_to(tensors);
  }
  const TestFolder coded_folder, folder;
  write(coded_folder, tensors);
  const auto coded = open(coded_folder.path());
  coded->set_matrix_reader(std::make_unique<testing::TestReader>(int4_format(32)));
  const LinearSpec spec{{{"q", "", kQ}, {"k", "", kKv}, {"v", "", kKv}}, kIn};
  const auto packed = pack(folder, *coded, spec, std::nullopt);
  report_.clear();
  const Linear from_file = load(*packed, spec, std::nullopt);
  EXPECT_EQ(report_.size(), 3u);
  EXPECT_EQ(product(from_file, x_), product(load(*coded, spec, std::nullopt), x_));
}

}  // namespace
}  // namespace transept
