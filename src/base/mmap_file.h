// A file mapped read-only. Owns the mapping; views into it live as long as it does. Immutable, so thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace transept {

class MmapFile final {
 public:
  // Errors: the path does not exist, is not a regular file, or cannot be read; the message names the path.
  static StatusOr<std::unique_ptr<MmapFile>> open(const std::string& path);
  ~MmapFile();
  MmapFile(const MmapFile&) = delete;
  MmapFile& operator=(const MmapFile&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }
  const std::string& path() const { return path_; }

  // Copies bytes [offset, offset + out.size()) without mapping them: they count for no process. REQUIRES: in range.
  void read(size_t offset, std::span<std::byte> out) const;

  // All of it will be read again and again: the system may bring it in, and map it, in large pages.
  void prefer_large_pages() const;

  // The pages of `range` (part of bytes()) need not stay in this process's memory: whoever reads them again gets them
  // from the file again.
  void release_pages(std::span<const std::byte> range) const;

 private:
  MmapFile(std::string path, int fd, const void* data, size_t size)
      : path_(std::move(path)), fd_(fd), data_(data), size_(size) {}

  std::string path_;
  int fd_;
  const void* data_;
  size_t size_;
};

// The whole of a small text file. Errors as MmapFile::open, and files over `max_bytes`.
StatusOr<std::string> read_file(const std::string& path, size_t max_bytes = size_t{256} << 20);

}  // namespace transept
