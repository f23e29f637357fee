#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

// Lines to a file or to standard output ("-"), each flushed when `live`. Not thread-safe.
class OutputFile final {
 public:
  // Errors: the file cannot be made (names it).
  static StatusOr<OutputFile> open(const std::string& path, bool live);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  void write_line(std::string_view line);
  // Errors: something could not be written (a full disk, a closed pipe).
  Status close();

 private:
  OutputFile(std::FILE* file, std::string path, bool live) : file_(file), path_(std::move(path)), live_(live) {}

  std::FILE* file_;
  std::string path_;
  bool live_;
  bool failed_ = false;
};

}  // namespace transept
