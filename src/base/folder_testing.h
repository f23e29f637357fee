// A folder of its own under the system's temporary folder, removed at the end: for tests that read files.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace transept::testing {

class TestFolder final {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "transept-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  void write(std::string_view name, std::string_view content) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    // Not written over: ext4 waits for the disk when a file that was cut to nothing is closed.
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    std::ofstream(file, std::ios::binary) << content;
  }

 private:
  std::string path_;
};

}  // namespace transept::testing
