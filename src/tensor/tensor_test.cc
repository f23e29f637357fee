// Views: slices address the elements that they name.
#include "tensor/tensor.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace transept {
namespace {

class TensorTest : public ::testing::Test {
 protected:
  TensorTest() : data_(24) { std::iota(data_.begin(), data_.end(), 0.0f); }
  std::vector<float> data_;
};

TEST_F(TensorTest, DenseViewsAreRowMajor) {
  const TensorView t(data_.data(), DType::kFloat32, {2, 3, 4});
  EXPECT_EQ(t.rank, 3);
  EXPECT_EQ(t.num_elements(), 24);
  EXPECT_EQ(t.stride[0], 12);
  EXPECT_EQ(t.stride[1], 4);
  EXPECT_EQ(t.stride[2], 1);
  EXPECT_EQ(t.row(1)[0], 12.0f);
  EXPECT_FALSE(t.empty());
}

TEST_F(TensorTest, RowsAndColumnsOfAMatrix) {
  const TensorView m(data_.data(), DType::kFloat32, {4, 6});
  const TensorView middle = m.rows(1, 3);
  EXPECT_EQ(middle.dim(0), 2);
  EXPECT_EQ(middle.row(0)[0], 6.0f);
  const TensorView k = m.columns(2, 4);  // as K of a fused QKV of width 2
  EXPECT_EQ(k.dim(1), 2);
  EXPECT_EQ(k.row(3)[1], 21.0f);
  const TensorView both = m.rows(2, 4).columns(4, 6);
  EXPECT_EQ(both.row(1)[0], 22.0f);
}

TEST_F(TensorTest, HeadsOfAColumnSlice) {
  const TensorView m(data_.data(), DType::kFloat32, {2, 12});
  const TensorView heads = m.columns(4, 8).split_heads(2);  // [2 rows, 2 heads, 2]
  EXPECT_EQ(heads.rank, 3);
  EXPECT_EQ(heads.dim(1), 2);
  EXPECT_EQ(heads.dim(2), 2);
  EXPECT_EQ(heads.f32()[1 * heads.stride[0] + 1 * heads.stride[1] + 0 * heads.stride[2]], 18.0f);
}

TEST_F(TensorTest, SlicesOfOtherTypesMoveByTheirSize) {
  std::vector<uint16_t> halves(12);
  const TensorView m(halves.data(), DType::kFloat16, {3, 4});
  EXPECT_EQ(m.rows(2, 3).raw, halves.data() + 8);
  EXPECT_EQ(m.columns(3, 4).raw, halves.data() + 3);
}

TEST_F(TensorTest, Emptiness) {
  EXPECT_TRUE(TensorView().empty());
  const TensorView m(data_.data(), DType::kFloat32, {4, 6});
  EXPECT_TRUE(m.rows(2, 2).empty());
  EXPECT_EQ(m.rows(2, 2).num_elements(), 0);
}

}  // namespace
}  // namespace transept
