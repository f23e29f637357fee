// Matrices of CTranslate2's models: divisions, one row more than the file has, scales that are none.
#include "foreign/ct2_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/folder_testing.h"
#include "weights/safetensors_testing.h"
#include "weights/weight_map.h"

namespace transept {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestFolder;
using testing::TestTensor;

class Ct2Matrices : public ::testing::Test {
 protected:
  WeightMap& map(const std::vector<TestTensor>& tensors, std::set<std::string, std::less<>> longer = {}) {
    dir_.write("model.safetensors", testing::safetensors_bytes(tensors));
    map_ = *WeightMap::open(dir_.path());
    map_->set_optional_prefix("model.");
    map_->set_matrix_reader(std::make_unique<Ct2MatrixReader>(std::move(longer)));
    return *map_;
  }
  static std::vector<float> read(WeightMap& weights, int64_t n, int64_t k, int64_t begin, IndexRange columns) {
    const auto source = weights.matrix("a.weight", {n, k}, WeightUse::kPacked);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    EXPECT_EQ((*source)->coded(), nullptr);
    std::vector<float> values(static_cast<size_t>((n - begin) * columns.size()));
    (*source)->read_rows(begin, n - begin, columns, values);
    (*source)->release_rows(begin, n - begin);
    return values;
  }

  TestFolder dir_;
  std::unique_ptr<WeightMap> map_;
};

const TestTensor kCodes = {"model.a.weight", "I8", {2, 3}, bytes_of<int8_t>({1, -2, 5, 127, -128, 0})};

TEST_F(Ct2Matrices, CodesAreDividedByTheirRowsScale) {
  WeightMap& weights = map({kCodes, {"model.a.weight_scale", "F32", {2}, bytes_of<float>({3, 0.7f})}});
  EXPECT_TRUE(weights.is_quantized("a.weight"));
  EXPECT_THAT(read(weights, 2, 3, 0, {0, 3}), ElementsAre(1 / 3.0f, -2 / 3.0f, 5 / 3.0f, 127 / 0.7f, -128 / 0.7f, 0));
  EXPECT_THAT(read(weights, 2, 3, 1, {1, 3}), ElementsAre(-128 / 0.7f, 0));
  EXPECT_TRUE(weights.unread().empty());
}

TEST_F(Ct2Matrices, OfSixteenBitsHaveOneScale) {
  WeightMap& weights = map({{"a.weight", "I16", {2, 2, 1}, bytes_of<int16_t>({1024, -1, 301, -1024})},
                            {"a.weight_scale", "F32", {1}, bytes_of<float>({7})}});
  EXPECT_THAT(read(weights, 2, 2, 0, {0, 2}), ElementsAre(1024 / 7.0f, -1 / 7.0f, 301 / 7.0f, -1024 / 7.0f));
}

TEST_F(Ct2Matrices, AreLongerByARowOfZeros) {
  WeightMap& codes = map({kCodes, {"model.a.weight_scale", "F32", {2}, bytes_of<float>({1, 1})}}, {"model.a.weight"});
  EXPECT_THAT(read(codes, 3, 3, 1, {1, 3}), ElementsAre(-128, 0, 0, 0));
  EXPECT_THAT(read(codes, 3, 3, 2, {0, 3}), ElementsAre(0, 0, 0));
  WeightMap& floats = map({{"a.weight", "F32", {1, 2}, bytes_of<float>({5, 6})}}, {"a.weight"});
  EXPECT_THAT(read(floats, 2, 2, 0, {0, 2}), ElementsAre(5, 6, 0, 0));
}

TEST_F(Ct2Matrices, AreChecked) {
  const auto error = [&](const std::vector<float>& scales, int64_t n, int64_t k) {
    WeightMap& weights = map({kCodes, {"a.weight_scale", "F32", {std::ssize(scales)}, bytes_of(scales)}});
    const auto source = weights.matrix("a.weight", {n, k}, WeightUse::kPacked);
    EXPECT_FALSE(source.ok());
    return source.ok() ? "" : error_message(source.status());
  };
  EXPECT_THAT(error({1, 1}, 3, 3), HasSubstr("is of 2 times 3 weights, expected 3 times 3"));
  EXPECT_THAT(error({1, 1}, 2, 4), HasSubstr("expected 2 times 4"));
  EXPECT_THAT(error({1, 0}, 2, 3), HasSubstr("a.weight_scale\": element 1 is 0 or not finite"));
  EXPECT_THAT(error({NAN, 1}, 2, 3), HasSubstr("element 0 is 0 or not finite"));
  EXPECT_THAT(error({1, 1, 1}, 2, 3), HasSubstr("a.weight_scale"));
}

}  // namespace
}  // namespace transept
