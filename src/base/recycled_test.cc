#include "base/recycled.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(Recycled, KeepsTheMemoryOfClearedElements) {
  Recycled<std::vector<int>> list;
  list.push().assign(100, 1);
  list.push().assign(50, 2);
  const int* memory = list[0].data();
  list.clear();
  EXPECT_TRUE(list.empty());
  std::vector<int>& first = list.push();
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(first.data(), memory);
  EXPECT_GE(first.capacity(), 100u);
  EXPECT_EQ(list.size(), 1u);
}

TEST(Recycled, IteratesOverWhatIsInTheList) {
  Recycled<std::vector<int>> list;
  for (int i = 0; i < 3; ++i) list.push() = {i};
  list.pop_back();
  int sum = 0, count = 0;
  for (const std::vector<int>& element : list) {
    sum += element[0];
    ++count;
  }
  EXPECT_EQ(count, 2);
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(list.back()[0], 1);
}

}  // namespace
}  // namespace transept
