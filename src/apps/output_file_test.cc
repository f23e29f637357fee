// What is written is in the file when it has to be, and what cannot be written is told.
#include "apps/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/folder_testing.h"

namespace transept {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A reader of a live file has each piece as soon as it is written.
TEST(OutputFile, LiveOnesAreFlushed) {
  const testing::TestFolder folder;
  const std::string path = folder.path() + "/out";
  auto file = OutputFile::open(path, true);
  ASSERT_TRUE(file.ok()) << file.status();
  file->write("a");
  EXPECT_EQ(content(path), "a");
  file->write_line("b");
  EXPECT_EQ(content(path), "ab\n");
  EXPECT_TRUE(file->is_ok());
  EXPECT_TRUE(file->close().ok());
}

TEST(OutputFile, OthersAreWholeWhenTheyAreClosed) {
  const testing::TestFolder folder;
  const std::string path = folder.path() + "/out";
  for (const bool appends : {false, false, true}) {
    auto file = OutputFile::open(path, false, appends);
    ASSERT_TRUE(file.ok()) << file.status();
    file->write_line("one");
    file->write("two");
    EXPECT_TRUE(file->close().ok());
    EXPECT_EQ(content(path), appends ? "one\ntwoone\ntwo" : "one\ntwo");
  }
}

TEST(OutputFile, AFullDiskIsTold) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no device /dev/full";
  for (const bool is_live : {false, true}) {
    auto file = OutputFile::open("/dev/full", is_live);
    ASSERT_TRUE(file.ok()) << file.status();
    file->write("a");
    EXPECT_EQ(file->is_ok(), !is_live);
    EXPECT_FALSE(file->close().ok());
  }
  EXPECT_FALSE(OutputFile::open("/nowhere/out", true).ok());
}

}  // namespace
}  // namespace transept
