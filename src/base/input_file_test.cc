#include "base/input_file.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

class InputFileTest : public ::testing::Test {
 protected:
  InputFileTest() : path_(str_cat(::testing::TempDir(), "input_file_test_", ::getpid())) {
    std::ofstream(path_, std::ios::binary) << "0123456789";
  }
  void TearDown() override { std::remove(path_.c_str()); }

  std::string path_;
};

TEST_F(InputFileTest, ReadsAnyPart) {
  const auto file = InputFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 10u);
  EXPECT_EQ((*file)->path(), path_);
  std::string part(4, ' ');
  const auto bytes = std::as_writable_bytes(std::span<char>(part.data(), part.size()));
  ASSERT_TRUE((*file)->read(6, bytes).ok());
  EXPECT_EQ(part, "6789");
  EXPECT_TRUE((*file)->read(10, bytes.first(0)).ok());
}

TEST_F(InputFileTest, AFileThatIsCutIsAnErrorThatSaysBothLengths) {
  const auto file = InputFile::open(path_);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path_, 3);
  std::string part(3, ' ');
  const auto bytes = std::as_writable_bytes(std::span<char>(part.data(), part.size()));
  EXPECT_TRUE((*file)->read(0, bytes).ok());
  const Status cut = (*file)->read(2, bytes);
  ASSERT_FALSE(cut.ok());
  EXPECT_THAT(error_message(cut), HasSubstr("was cut while it was read: it had 10 bytes, and has 3 now"));
}

TEST_F(InputFileTest, WholeFilesKeepTheirLimit) {
  EXPECT_EQ(read_file(path_, 10).value_or(""), "0123456789");
  const auto refused = read_file(path_, 9);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(error_message(refused.status()), HasSubstr("10 bytes"));
}

}  // namespace
}  // namespace transept
