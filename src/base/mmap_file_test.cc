#include "base/mmap_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

class MmapFileTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view content) {
    std::string path = str_cat(::testing::TempDir(), "mmap_file_test_", ::getpid(), "_", name);
    std::ofstream(path, std::ios::binary) << content;
    paths_.push_back(path);
    return path;
  }
  void TearDown() override {
    for (const std::string& path : paths_) std::remove(path.c_str());
  }
  std::vector<std::string> paths_;
};

TEST_F(MmapFileTest, MapsTheBytes) {
  const std::string content("a\0b\xFF", 4);
  const std::string path = write("bytes", content);
  const auto file = MmapFile::open(path);
  ASSERT_TRUE(file.ok()) << error_message(file.status());
  EXPECT_EQ((*file)->text(), content);
  EXPECT_EQ((*file)->bytes().size(), 4u);
  EXPECT_EQ((*file)->path(), path);
  EXPECT_EQ(*read_file(path), content);
}

TEST_F(MmapFileTest, AnEmptyFileIsEmpty) {
  const auto file = MmapFile::open(write("empty", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->text().empty());
}

TEST_F(MmapFileTest, ErrorsNameThePath) {
  const std::string missing = ::testing::TempDir() + "no/such/file";
  const auto absent = MmapFile::open(missing);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(error_message(absent.status()), HasSubstr("no/such/file"));
  const auto folder = MmapFile::open(::testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(error_message(folder.status()), HasSubstr("not a regular file"));
}

TEST_F(MmapFileTest, ReadFileKeepsItsLimit) {
  const std::string path = write("long", "12345");
  EXPECT_TRUE(read_file(path, 5).ok());
  const auto refused = read_file(path, 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(error_message(refused.status()), HasSubstr("5 bytes"));
}

// A named pipe without a writer must not make a reader wait for ever.
TEST_F(MmapFileTest, APipeIsRefusedAtOnce) {
  const std::string path = str_cat(::testing::TempDir(), "mmap_file_test_", ::getpid(), "_pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  paths_.push_back(path);
  const auto pipe = MmapFile::open(path);
  ASSERT_FALSE(pipe.ok());
  EXPECT_THAT(error_message(pipe.status()), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace transept
