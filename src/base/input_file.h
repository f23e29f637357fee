// A regular file that is read piece by piece, and never mapped: whatever happens to it meanwhile is an error, and not
// the end of the process. Immutable, so thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace transept {

class InputFile final {
 public:
  // Errors: the path does not exist, is not a regular file, or cannot be read; the message names the path.
  static StatusOr<std::unique_ptr<InputFile>> open(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  size_t size() const { return size_; }  // bytes, when it was opened
  int descriptor() const { return fd_; }

  // Bytes [offset, offset + out.size()), all of them. REQUIRES: within size(). Errors: the file has become shorter
  // (says the lengths, then and now), or cannot be read; without the path.
  Status read(size_t offset, std::span<std::byte> out) const;

 private:
  InputFile(std::string path, int fd, size_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_;
  size_t size_;
};

// The whole of a small text file. Errors as InputFile's, all with the path, and files over `max_bytes`.
StatusOr<std::string> read_file(const std::string& path, size_t max_bytes = size_t{256} << 20);

}  // namespace transept
