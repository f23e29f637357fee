// Proves that a product divided among ranks is the whole one: by outputs to the bit, by inputs as a sum; and that
// matrices of codes load as what they mean, or as the codes they are, through every way of loading.
#include "layers/linear.h"

#include "layers/linear_testing.h"

namespace transept {
namespace {

using testing::CodedValues;
using testing::kHead;
using testing::kIn;
using testing::kKv;
using testing::kQ;
using testing::kRows;
using testing::kStorages;
using testing::LinearTest;
using testing::name_of;
using testing::PackedLinear;
using testing::random_values;
using testing::TestFolder;
using testing::TestTensor;

// Written out by hand: whole heads, of each source by itself, as evenly as they can be.
std::vector<IndexRange> ranges_of(int64_t rank, int64_t count) {
  const auto share = [&](int64_t first, int64_t heads) {
    return IndexRange{first + heads * rank / count * kHead, first + heads * (rank + 1) / count * kHead};
  };
  return {share(0, 8), share(kQ, 4), share(kQ + kKv, 4)};
}

TEST_F(LinearTest, OutputsOfAllRanksAreTheWholesToTheBit) {
  const auto weights = open(folder_.path());
  for (const auto& storage : kStorages) {
    const Linear whole = load(*weights, qkv(Split::kOutputs), storage);
    const std::vector<float> expected = product(whole, x_);
    for (const int32_t count : {2, 3, 4, 8}) {
      std::vector<float> together(expected.size(), NAN);
      for (int32_t rank = 0; rank < count; ++rank) {
        const Linear part = load(*weights, qkv(Split::kOutputs), storage, {rank, count});
        place(product(part, x_), ranges_of(rank, count), whole.out_features(), together);
      }
      EXPECT_EQ(together, expected) << name_of(storage) << " over " << count;
    }
  }
}

TEST_F(LinearTest, BlocksOfOneSourceAreDividedEach) {
  const auto weights = open(folder_.path());
  const LinearSpec spec{{{.weight = "up.weight", .out_features = 34, .blocks = 2}}, kIn, {}, Split::kOutputs};
  const std::vector<float> expected = product(load(*weights, spec, std::nullopt), x_);
  std::vector<float> together(expected.size(), NAN);
  place(product(load(*weights, spec, std::nullopt, {0, 2}), x_), {{0, 8}, {17, 25}}, 34, together);
  place(product(load(*weights, spec, std::nullopt, {1, 2}), x_), {{8, 17}, {25, 34}}, 34, together);
  EXPECT_EQ(together, expected);
}

TEST_F(LinearTest, LayersThatAreNotDividedAreWholeOnEveryRank) {
  const auto weights = open(folder_.path());
  const std::vector<float> expected = product(load(*weights, qkv(Split::kNone), kInt8Format), x_);
  EXPECT_EQ(product(load(*weights, qkv(Split::kNone), kInt8Format, {1, 2}), x_), expected);
}

TEST(ShareOf, UnitsAreWholeAndDividedInOrder) {
  const auto shares = [](int64_t size, int64_t unit, int32_t count) {
    std::vector<IndexRange> all;
    all.reserve(static_cast<size_t>(count));
    for (int32_t rank = 0; rank < count; ++rank) all.push_back(share_of(size, unit, {rank, count}));
    return all;
  };
  EXPECT_EQ(shares(12, 1, 1), (std::vector<IndexRange>{{0, 12}}));
  EXPECT_EQ(shares(12, 3, 2), (std::vector<IndexRange>{{0, 6}, {6, 12}}));
  EXPECT_EQ(shares(15, 3, 2), (std::vector<IndexRange>{{0, 6}, {6, 15}}));
  EXPECT_EQ(shares(10, 4, 3), (std::vector<IndexRange>{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(shares(5, 8, 2), (std::vector<IndexRange>{{0, 0}, {0, 5}}));
  EXPECT_EQ(shares(0, 8, 2), (std::vector<IndexRange>{{0, 0}, {0, 0}}));
}

// A rank's part of the inputs: columns of x and of the statistics' owner, the whole row.
class DividedInputs : public LinearTest {
 protected:
  std::vector<RowStatistics> statistics(std::vector<float>& x) {
    const auto rows = static_cast<int64_t>(x.size()) / kIn;
    std::vector<RowStatistics> found(static_cast<size_t>(rows));
    row_statistics(context_, TensorView(x.data(), DType::kFloat32, {rows, kIn}), found);
    return found;
  }

  static std::vector<float> columns(const std::vector<float>& x, IndexRange range) {
    std::vector<float> part;
    for (size_t row = 0; row < x.size(); row += kIn) {
      const auto begin = x.begin() + static_cast<int64_t>(row);
      part.insert(part.end(), begin + range.begin, begin + range.end);
    }
    return part;
  }

  // The sum of all ranks' products, in order of ranks.
  std::vector<float> sum_of_ranks(WeightMap& weights, const LinearSpec& spec,
                                  const std::optional<WeightFormat>& storage, int32_t count, std::vector<float> x) {
    const std::vector<RowStatistics> given = statistics(x);
    std::vector<float> sum;
    for (int32_t rank = 0; rank < count; ++rank) {
      const Linear part = load(weights, spec, storage, {rank, count});
      const IndexRange own = share_of(kIn, spec.unit, {rank, count});
      EXPECT_EQ(part.in_features(), own.size());
      const std::vector<float> y = product(part, columns(x, own), given.data());
      sum.resize(y.size());
      for (size_t i = 0; i < y.size(); ++i) sum[i] += y[i];
    }
    return sum;
  }
};

LinearSpec divided_inputs(LayerInputs inputs = LayerInputs::kUsual) {
  return {{{"q.weight", "q.bias", kQ}}, kIn, inputs, Split::kInputs, 12};
}

// Sums of 96 products of size 0.3, in another order: a few roundings of 2^-24 of up to 10. A bias that is added twice,
// or a weight that is rounded with the scale of its part, moves them by more than 1e-3.
TEST_F(DividedInputs, SumsOfRanksAreTheWholesButForRounding) {
  const auto weights = open(folder_.path());
  for (const auto& storage : kStorages) {
    for (const LayerInputs inputs : {LayerInputs::kUsual, LayerInputs::kConvolution, LayerInputs::kOutliers}) {
      const std::vector<float> expected = product(load(*weights, divided_inputs(inputs), storage), x_);
      for (const int32_t count : {2, 3, 8}) {
        const std::vector<float> sum = sum_of_ranks(*weights, divided_inputs(inputs), storage, count, x_);
        ASSERT_EQ(sum.size(), expected.size());
        // bfloat16 arithmetic adds even and odd inputs apart, which is one more order.
        for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], expected[i], 1e-5) << name_of(storage) << count;
      }
    }
  }
}

// Rows with one entry: each integer sum is one weight's code times a step, and others are 0. Equal bits mean that every
// code, scale and step of the ranks is the whole's.
TEST_F(DividedInputs, Int8RanksHaveTheWholesCodesScalesAndSteps) {
  const auto weights = open(folder_.path());
  std::vector<float> ones(static_cast<size_t>(kIn * kIn));
  for (size_t i = 0; i < kIn; ++i) ones[i * kIn + i] = i % 2 == 0 ? 1.7f : -0.3f;
  LinearSpec spec = divided_inputs();
  spec.sources[0].bias = "";
  const std::vector<float> expected = product(load(*weights, spec, kInt8Format), ones);
  for (const int32_t count : {2, 3, 8}) {
    EXPECT_EQ(sum_of_ranks(*weights, spec, kInt8Format, count, ones), expected) << count;
  }
}

// --- codes

class CodedLinear : public LinearTest {
 protected:
  static constexpr int64_t kOut = 70;

  // Opens a file of this one matrix, which the reader knows.
  std::unique_ptr<WeightMap> open_coded(const TestFolder& folder, const CodedValues& values) {
    std::vector<TestTensor> tensors;
    values.add_to(tensors);
    write(folder, tensors);
    auto weights = open(folder.path());
    weights->set_matrix_reader(std::make_unique<testing::TestReader>(values.format));
    return weights;
  }

  static LinearSpec spec(Split split = Split::kNone, int64_t unit = 1) {
    return {{{"m", "", kOut}}, kIn, LayerInputs::kUsual, split, unit};
  }
};

TEST_F(CodedLinear, MultipliesWithWhatTheCodesMean) {
  for (const CodedValues& values : testing::coded_examples("m", kOut, kIn)) {
    SCOPED_TRACE(weight_format_name(values.format));
    const TestFolder folder;
    const auto weights = open_coded(folder, values);
    const std::vector<float> y = product(load(*weights, spec(), std::nullopt), x_);
    EXPECT_EQ(report_.back().stored, values.format);
    const WeightFormat& kept = values.format.is_nibbles() ? values.format : kFloat32Format;
    EXPECT_EQ(report_.back().format, PackedFormat{kept}) << "inputs are not rounded unasked";
    for (int64_t i = 0; i < std::ssize(y); ++i) {
      double sum = 0, size = 0;
      for (int64_t j = 0; j < kIn; ++j) {
        const double term = values.weight(i % kOut, j) * x_[static_cast<size_t>(i / kOut * kIn + j)];
        sum += term, size += std::abs(term);
      }
      ASSERT_NEAR(y[static_cast<size_t>(i)], sum, 2e-7 * size) << i;
    }
  }
}

// Libraries turn [in, out] into rows of outputs when they quantise it.
TEST_F(CodedLinear, AQuantisedConv1DHasRowsOfOutputs) {
  const CodedValues values = testing::coded_examples("m", kOut, kIn)[1];
  const TestFolder folder;
  const auto weights = open_coded(folder, values);
  LinearSpec transposed = spec();
  transposed.sources[0].is_transposed = true;
  EXPECT_EQ(product(load(*weights, transposed, std::nullopt), x_), product(load(*weights, spec(), std::nullopt), x_));
}

TEST_F(CodedLinear, Int8CodesAreNotRoundedAgain) {
  const CodedValues values = testing::coded_examples("m", kOut, kIn)[0];
  PackedMatrix packed(kOut, kIn, {kInt8Format});
  packed.set_codes(0, kOut, values.codes, values.scales);
  std::vector<float> x = x_, expected(static_cast<size_t>(kRows * kOut));
  gemm(context_, TensorView(x.data(), DType::kFloat32, {kRows, kIn}), packed, {},
       TensorView(expected.data(), DType::kFloat32, {kRows, kOut}));
  const TestFolder folder;
  const auto weights = open_coded(folder, values);
  EXPECT_EQ(product(load(*weights, spec(), kInt8Format), x_), expected);
}

TEST_F(CodedLinear, OnlyInt8RoundsWhatTheCodesMean) {
  for (const CodedValues& values : testing::coded_examples("m", kOut, kIn)) {
    std::vector<float> meant;
    for (int64_t i = 0; i < kOut * kIn; ++i) meant.push_back(static_cast<float>(values.weight(i / kIn, i % kIn)));
    const TestFolder folder, as_floats;
    write(as_floats, {{"m", "F32", {kOut, kIn}, testing::bytes_of(meant)}});
    const auto coded = open_coded(folder, values), widened = open(as_floats.path());
    for (const WeightFormat& storage : {kFloat32Format, kFloat16Format, kBFloat16Format, kInt8Format}) {
      if (storage == values.format) continue;
      const WeightFormat& kept = storage == kInt8Format ? kInt8Format : kFloat32Format;
      const std::vector<float> expected = product(load(*widened, spec(), kept), x_);
      EXPECT_EQ(product(load(*coded, spec(), storage), x_), expected)
          << weight_format_name(values.format) << " as " << weight_format_name(storage);
      const bool is_16_bit = storage == kFloat16Format || storage == kBFloat16Format;
      const bool stays =
          is_16_bit && values.format.is_nibbles() && has_panels(values.format) && holds_inputs(values.format, kIn);
      EXPECT_EQ(weight_format_name(report_.back().format.weights), weight_format_name(stays ? values.format : kept));
    }
  }
}

// A format that rounds the inputs, too.
class RoundingLinearReader final : public MatrixReader {
 public:
  explicit RoundingLinearReader(const WeightFormat& format) : matrices_(format) {}
  bool has(const WeightMap& weights, std::string_view name) const override { return matrices_.has(weights, name); }
  StatusOr<std::unique_ptr<MatrixSource>> open(WeightMap& weights, std::string_view name, int64_t n, int64_t k,
                                               WeightUse use) const override {
    return matrices_.open(weights, name, n, k, use);
  }
  StatusOr<InputQuantization> inputs_of(WeightMap& /*weights*/, std::string_view /*name*/,
                                        int64_t /*k*/) const override {
    return InputQuantization{.type = InputQuantization::Type::kInteger};
  }

 private:
  testing::TestReader matrices_;
};

TEST_F(CodedLinear, InputsAreRoundedAsTheFormatDefinesIt) {
  const CodedValues values = testing::coded_examples("m", kOut, kIn)[0];
  const TestFolder folder;
  std::vector<float> x = x_;
  std::fill_n(x.begin(), kIn, 0.0f);                          // a row of zeros
  x[kIn] = 127.5f, x[kIn + 1] = 2.5f, x[kIn + 2] = -3.5f;     // steps of 1: ties go to 2 and -4
  std::fill(x.begin() + kIn + 3, x.begin() + 2 * kIn, 0.5f);  // and to 0
  x[2 * kIn + 5] = NAN;
  const auto rounds = [&](bool does) {
    std::vector<TestTensor> tensors;
    values.add_to(tensors);
    write(folder, tensors);
    const auto weights = open(folder.path());
    weights->set_matrix_reader(std::make_unique<RoundingLinearReader>(values.format));
    weights->set_rounds_inputs(does);
    return product(load(*weights, spec(), std::nullopt), x);
  };
  const std::vector<float> y = rounds(true);
  for (int64_t row = 0; row < kRows; ++row) {
    float largest = 0;
    for (int64_t j = 0; j < kIn; ++j) largest = std::max(largest, std::abs(x[static_cast<size_t>(row * kIn + j)]));
    const float scale = largest / 127.5f;
    for (int64_t i = 0; i < kOut; ++i) {
      const float result = y[static_cast<size_t>(row * kOut + i)];
      if (row == 2) {
        ASSERT_TRUE(std::isnan(result));
        continue;
      }
      double sum = 0, size = 0;
      for (int64_t j = 0; j < kIn && scale > 0; ++j) {
        const double code = std::rint(x[static_cast<size_t>(row * kIn + j)] / scale);  // the mode is nearest, even
        const double term = values.weight(i, j) * (std::min(code, 127.0) * scale);
        sum += term, size += std::abs(term);
      }
      ASSERT_NEAR(result, sum, 3e-7 * size) << row << ", " << i;
    }
  }
  EXPECT_EQ(report_.back().inputs.size(), 1u);
  EXPECT_NE(rounds(false).back(), y.back());
  EXPECT_TRUE(report_.back().inputs.empty());
}

TEST_F(CodedLinear, RanksDivideCodesToo) {
  for (const CodedValues& values : testing::coded_examples("m", kOut, kIn)) {
    const TestFolder folder;
    const auto weights = open_coded(folder, values);
    for (const auto& storage : {std::optional<WeightFormat>(), {kInt8Format}}) {
      SCOPED_TRACE(weight_format_name(values.format) + " as " + name_of(storage));
      const std::vector<float> expected = product(load(*weights, spec(), storage), x_);
      std::vector<float> together(expected.size(), NAN);
      for (int32_t rank = 0; rank < 3; ++rank) {
        const std::vector<float> part = product(load(*weights, spec(Split::kOutputs, 7), storage, {rank, 3}), x_);
        place(part, {share_of(kOut, 7, {rank, 3})}, kOut, together);
      }
      EXPECT_EQ(together, expected);
    }
  }
}

// --- packed folders

TEST_F(PackedLinear, RanksOfAPackedFolderHaveTheOriginalsBits) {
  const auto original = open(folder_.path());
  for (const auto& storage : kStorages) {
    const TestFolder folder;
    const auto packed = pack(folder, *original, qkv(Split::kNone), storage);
    for (const Split split : {Split::kNone, Split::kOutputs, Split::kInputs}) {
      for (int32_t rank = 0; rank < 3; ++rank) {
        const Linear from_file = load(*packed, qkv(split), storage, {rank, 3});
        EXPECT_EQ(report_.back().is_mapped, split == Split::kNone) << "a part is packed again";
        const Linear from_original = load(*original, qkv(split), storage, {rank, 3});
        std::vector<float> x = random_values(kRows * from_file.in_features(), 30, 1);
        EXPECT_EQ(product(from_file, x), product(from_original, x)) << name_of(storage);
      }
    }
  }
}

TEST_F(PackedLinear, OfCodesOnlyWhatWasKeptComesBack) {
  CodedValues values = testing::coded_examples("m", kQ, kIn)[0];
  const TestFolder coded_folder, folder, other;
  std::vector<TestTensor> tensors;
  values.add_to(tensors);
  write(coded_folder, tensors);
  const auto coded = open(coded_folder.path());
  coded->set_matrix_reader(std::make_unique<testing::TestReader>(values.format));
  const LinearSpec spec{{{"m", "", kQ}}, kIn};
  const auto as_int8 = pack(folder, *coded, spec, kInt8Format);
  for (const auto& storage : {std::optional<WeightFormat>(), {kFloat16Format}, {kInt8Format}}) {
    EXPECT_EQ(product(load(*as_int8, spec, storage), x_), product(load(*coded, spec, storage), x_)) << name_of(storage);
  }
  const auto as_float = pack(other, *coded, spec, kFloat32Format);
  EXPECT_EQ(product(load(*as_float, spec, std::nullopt), x_), product(load(*coded, spec, std::nullopt), x_));
  const Status status = Linear::load(*as_float, spec, PackOptions(threads_, kInt8Format, nullptr)).status();
  EXPECT_NE(error_message(status).find("is packed as float32 and was int8; int8 cannot be made of that"),
            std::string::npos)
      << status;
}

// --- matrices that are stored [inputs, outputs]

TEST_F(LinearTest, ATransposedMatrixIsTheSameLayerInEveryStorage) {
  const std::vector<float> q = random_values(kQ * kIn, 1), kv = random_values(2 * kKv * kIn, 8);
  const auto transposed = [](const std::vector<float>& values, int64_t n) {
    std::vector<float> other(values.size());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < kIn; ++j) {
        other[static_cast<size_t>(j * n + i)] = values[static_cast<size_t>(i * kIn + j)];
      }
    }
    return testing::bytes_of(other);
  };
  const TestFolder plain_folder, folder;
  write(plain_folder, {{"q.weight", "F32", {kQ, kIn}, testing::bytes_of(q)},
                       {"kv.weight", "F32", {2 * kKv, kIn}, testing::bytes_of(kv)}});
  write(folder, {{"q.weight", "F32", {kIn, kQ}, transposed(q, kQ)},
                 {"kv.weight", "F32", {kIn, 2 * kKv}, transposed(kv, 2 * kKv)}});
  const auto plain = open(plain_folder.path()), weights = open(folder.path());
  for (const Split split : {Split::kNone, Split::kOutputs, Split::kInputs}) {
    LinearSpec spec{
        {{.weight = "q.weight", .out_features = kQ}, {.weight = "kv.weight", .out_features = 2 * kKv}}, kIn, {}, split};
    for (const auto& storage : kStorages) {
      for (const Ranks& ranks : {Ranks{}, Ranks{1, 3}}) {
        for (LinearSource& source : spec.sources) source.is_transposed = false;
        const Linear expected = load(*plain, spec, storage, ranks);
        for (LinearSource& source : spec.sources) source.is_transposed = true;
        const Linear linear = load(*weights, spec, storage, ranks);
        ASSERT_EQ(linear.in_features(), expected.in_features());
        const std::vector<float> x = random_values(kRows * linear.in_features(), 21, 1);
        EXPECT_EQ(product(linear, x), product(expected, x)) << name_of(storage) << " rank " << ranks.rank;
      }
    }
  }
  PackOptions packing(threads_);
  const LinearSpec untransposed{{{.weight = "kv.weight", .out_features = 2 * kKv}}, kIn};
  EXPECT_EQ(error_param(Linear::load(*weights, untransposed, packing).status()), "kv.weight");
}

// --- convolutions

TEST_F(LinearTest, AConvolutionsInputsAreChannelsTapByTap) {
  const auto weights = open(folder_.path());
  const LinearSpec spec{{{.weight = "conv.weight", .out_features = 11, .kernel = 3}}, kIn};
  const std::vector<float> y = product(load(*weights, spec, std::nullopt), x_);
  const std::vector<float> w = random_values(11 * kIn, 7);
  for (int64_t i = 0; i < std::ssize(y); ++i) {
    double sum = 0;
    for (int64_t tap = 0; tap < 3; ++tap) {
      for (int64_t channel = 0; channel < kIn / 3; ++channel) {
        sum += static_cast<double>(w[static_cast<size_t>((i % 11 * (kIn / 3) + channel) * 3 + tap)]) *
               x_[static_cast<size_t>(i / 11 * kIn + tap * (kIn / 3) + channel)];
      }
    }
    ASSERT_NEAR(y[static_cast<size_t>(i)], sum, 1e-5);
  }
}

// Six inputs stay, and behind them there are channels tap by tap.
TEST_F(LinearTest, InputsBeforeAConvolutionsStay) {
  constexpr int64_t kBefore = 6, kTaps = 3, kChannels = (kIn - kBefore) / kTaps;
  const auto weights = open(folder_.path());
  const LinearSpec spec{{{.weight = "q.weight", .out_features = kQ, .kernel = kTaps, .before_kernel = kBefore}}, kIn};
  const std::vector<float> y = product(load(*weights, spec, std::nullopt), x_);
  const std::vector<float> w = random_values(kQ * kIn, 1);
  for (int64_t i = 0; i < std::ssize(y); ++i) {
    const float *row = w.data() + i % kQ * kIn, *x = x_.data() + i / kQ * kIn;
    double sum = 0;
    for (int64_t j = 0; j < kBefore; ++j) sum += static_cast<double>(row[j]) * x[j];
    for (int64_t tap = 0; tap < kTaps; ++tap) {
      for (int64_t channel = 0; channel < kChannels; ++channel) {
        sum += static_cast<double>(row[kBefore + channel * kTaps + tap]) * x[kBefore + tap * kChannels + channel];
      }
    }
    ASSERT_NEAR(y[static_cast<size_t>(i)], sum, 1e-5);
  }
}

}  // namespace
}  // namespace transept
