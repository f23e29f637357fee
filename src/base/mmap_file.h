// A file mapped read-only. Owns the mapping; views into it live as long as it does. Immutable, so thread-safe.
//
// If the file is cut meanwhile, reading what is gone ends the process by a sentence (base/mapped_ranges.h): so map what
// cannot be done without (weights), and read everything else (base/input_file.h).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/input_file.h"
#include "base/mapped_ranges.h"
#include "base/status.h"

namespace transept {

class MmapFile final {
 public:
  // Errors: as InputFile::open, or the file cannot be mapped; the message names the path.
  static StatusOr<std::unique_ptr<MmapFile>> open(const std::string& path);
  ~MmapFile();
  MmapFile(const MmapFile&) = delete;
  MmapFile& operator=(const MmapFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  const std::string& path() const { return file_->path(); }

  // Copies bytes [offset, offset + out.size()) without mapping them: they count for no process. REQUIRES: in range.
  // Bytes that are gone end the process, as mapped ones do.
  void read(size_t offset, std::span<std::byte> out) const;

  // All of it will be read again and again: the system may bring it in, and map it, in large pages.
  void prefer_large_pages() const;

  // The pages of `range` (part of bytes()) need not stay in this process's memory: a later reader gets them
  // from the file again.
  void release_pages(std::span<const std::byte> range) const;

 private:
  MmapFile(std::unique_ptr<InputFile> file, std::span<const std::byte> bytes)
      : file_(std::move(file)), bytes_(bytes), range_(std::in_place, bytes, file_->path().c_str()) {}

  std::unique_ptr<InputFile> file_;
  std::span<const std::byte> bytes_;
  std::optional<MappedRange> range_;
};

}  // namespace transept
