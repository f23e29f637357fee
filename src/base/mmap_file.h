// A file mapped read-only. Owns the file and the mapping; views are valid while it lives. Immutable, so thread-safe.
//
// If the file is truncated meanwhile, access to the missing part ends the process with a message
// (base/mapped_ranges.h). So map only what the process cannot run without (weights); read everything else
// (base/input_file.h).
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
  // Errors: as InputFile::open; kInvalidArgument if the file cannot be mapped. The message names the path. An empty
  // file maps to no bytes.
  static StatusOr<std::unique_ptr<MmapFile>> open(const std::string& path);
  ~MmapFile();
  MmapFile(const MmapFile&) = delete;
  MmapFile& operator=(const MmapFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  const std::string& path() const { return file_->path(); }

  // Copies bytes [offset, offset + out.size()) without touching the mapping, so they do not count in the resident
  // memory of the process. REQUIRES: within bytes(). A failed read ends the process, as a missing mapped page does.
  void read(size_t offset, std::span<std::byte> out) const;

  // Advises the system to back the mapping with huge pages, for bytes that are read again and again.
  void prefer_large_pages() const;

  // Advises the system to drop the pages that lie entirely in `range` (part of bytes()) from the memory of this
  // process. A later read loads them from the file again.
  void release_pages(std::span<const std::byte> range) const;

 private:
  MmapFile(std::unique_ptr<InputFile> file, std::span<const std::byte> bytes)
      : file_(std::move(file)), bytes_(bytes), range_(std::in_place, bytes, file_->path().c_str()) {}

  std::unique_ptr<InputFile> file_;
  std::span<const std::byte> bytes_;
  std::optional<MappedRange> range_;
};

}  // namespace transept
