// A regular file that is read piece by piece and never mapped: if another process truncates it, read() returns an
// error, where a mapping would raise SIGBUS. Owns the descriptor. Immutable, so thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace transept {

class InputFile final {
 public:
  // Errors: kNotFound if the path does not exist; kInvalidArgument if it cannot be opened or is not a regular file. The
  // message names the path.
  static StatusOr<std::unique_ptr<InputFile>> open(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  size_t size() const { return size_; }  // bytes, as of open()
  // Still owned by this object.
  int descriptor() const { return fd_; }

  // Fills `out` with bytes [offset, offset + out.size()). REQUIRES: within size(). Errors: kInvalidArgument if the file
  // has become shorter (names both lengths) or cannot be read; the message does not name the path.
  Status read(size_t offset, std::span<std::byte> out) const;

 private:
  InputFile(std::string path, int fd, size_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_;
  size_t size_;
};

// Returns the content of a small file. Errors: as InputFile, all with the path; kInvalidArgument if it has more than
// `max_bytes`.
StatusOr<std::string> read_file(const std::string& path, size_t max_bytes = size_t{256} << 20);

}  // namespace transept
