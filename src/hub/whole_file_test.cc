#include "hub/whole_file.h"

#include <gtest/gtest.h>

#include "base/folder_testing.h"

namespace transept {
namespace {

class WholeFileTest : public ::testing::Test {
 protected:
  bool is_whole(std::string_view content, const HubSize& hubs) {
    folder_.write("file", content);
    return is_whole_file(folder_.path() + "/file", hubs);
  }

  testing::TestFolder folder_;
};

TEST_F(WholeFileTest, ALargeFileHasItsVerySize) {
  EXPECT_TRUE(is_whole("12345", {5, true}));
  EXPECT_FALSE(is_whole("1234", {5, true}));
  EXPECT_FALSE(is_whole("123456", {5, true}));
  EXPECT_FALSE(is_whole("{}", {5, true})) << "the digest of a large file is the hub's: nobody changes it by hand";
}

TEST_F(WholeFileTest, ASmallFileMayBeChangedByHand) {
  EXPECT_TRUE(is_whole(R"({"a": 1})", {8, false}));
  EXPECT_TRUE(is_whole(R"({"a": 1, "b": 2})", {8, false})) << "longer";
  EXPECT_TRUE(is_whole("{}", {8, false})) << "a member less";
  EXPECT_FALSE(is_whole(R"({"a": )", {8, false}));
  EXPECT_FALSE(is_whole("a b\nc", {8, false})) << "half of a list of merges";
  EXPECT_FALSE(is_whole("12", {8, false})) << "JSON, and no object";
  EXPECT_FALSE(is_whole("", {8, false}));
}

TEST_F(WholeFileTest, WhatIsNotKnown) {
  EXPECT_TRUE(is_whole("", {}));
  EXPECT_FALSE(is_whole_file(folder_.path() + "/none", {}));
  EXPECT_FALSE(is_whole_file(folder_.path(), {})) << "a folder";
}

}  // namespace
}  // namespace transept
