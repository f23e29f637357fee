#include "base/mapped_ranges.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "base/mmap_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace transept {
namespace {

constexpr size_t kSize = size_t{256} << 10;

class MappedRangesTest : public ::testing::Test {
 protected:
  MappedRangesTest() : path_(str_cat(::testing::TempDir(), "mapped_ranges_test_", ::getpid())) {
    std::ofstream(path_, std::ios::binary) << std::string(kSize, 'x');
  }
  void TearDown() override { std::remove(path_.c_str()); }

  std::string path_;
};

using MappedRangesDeathTest = MappedRangesTest;

// What the compiler may not leave out.
void touch(const std::byte* at) { [[maybe_unused]] const auto value = *const_cast<volatile const std::byte*>(at); }

TEST_F(MappedRangesDeathTest, AMappedFileThatIsCutEndsTheProcessByItsName) {
  const auto end = [&] {
    catch_cut_files();
    const auto other = std::move(MmapFile::open("/proc/self/exe")).value();
    const auto file = std::move(MmapFile::open(path_)).value();
    touch(&file->bytes()[kSize - 1]);
    std::filesystem::resize_file(path_, 0);
    touch(&file->bytes()[kSize - 1]);
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(2),
              "^transept: .*mapped_ranges_test_.*: was cut .* the process ends\n$");
}

TEST_F(MappedRangesDeathTest, SoDoesReadingWhatIsGone) {
  const auto end = [&] {
    const auto file = std::move(MmapFile::open(path_)).value();
    std::filesystem::resize_file(path_, 0);
    std::byte out[1];
    file->read(kSize - 1, out);
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(2), "mapped_ranges_test_.*: was cut ");
}

TEST_F(MappedRangesDeathTest, WhatIsNotOursKeepsItsDefaultAction) {
  const auto sent = [] {
    catch_cut_files();
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(sent(), ::testing::KilledBySignal(SIGBUS), "");
  const auto elsewhere = [&] {
    catch_cut_files();
    // Ours once, and no more.
    std::move(MmapFile::open(path_)).value().reset();
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    const void* data = ::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE, fd, 0);
    std::filesystem::resize_file(path_, 0);
    touch(static_cast<const std::byte*>(data));
  };
  EXPECT_EXIT(elsewhere(), ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(MappedRangesDeathTest, MoreRangesThanPlacesAreMappedAllTheSame) {
  const auto end = [&] {
    catch_cut_files();
    const std::byte nothing[1] = {};
    {
      std::vector<std::unique_ptr<MappedRange>> ranges;
      for (size_t i = 0; i < MappedRange::kMaxRanges + 1; ++i) {
        ranges.push_back(std::make_unique<MappedRange>(nothing, "another"));
      }
    }
    const auto file = std::move(MmapFile::open(path_)).value();  // in a place that is free again
    std::filesystem::resize_file(path_, 0);
    touch(file->bytes().data());
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(2), "mapped_ranges_test_.*: was cut ");
}

}  // namespace
}  // namespace transept
