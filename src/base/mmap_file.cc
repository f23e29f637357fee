#include "base/mmap_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace transept {

StatusOr<std::unique_ptr<MmapFile>> MmapFile::open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, InputFile::open(path));
  std::span<const std::byte> bytes;
  if (file->size() > 0) {
    const void* data = ::mmap(nullptr, file->size(), PROT_READ, MAP_PRIVATE, file->descriptor(), 0);
    if (data == MAP_FAILED) return invalid_argument(path, ": cannot be mapped: ", std::strerror(errno));
    bytes = {static_cast<const std::byte*>(data), file->size()};
  }
  return std::unique_ptr<MmapFile>(new MmapFile(std::move(file), bytes));
}

MmapFile::~MmapFile() {
  range_.reset();  // first: what is mapped there next is somebody else's
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MmapFile::read(size_t offset, std::span<std::byte> out) const {
  if (!file_->read(offset, out).ok()) end_without_file(path().c_str());
}

void MmapFile::prefer_large_pages() const {
  // A refusal costs speed, no correctness.
  if (!bytes_.empty()) ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_HUGEPAGE);
}

void MmapFile::release_pages(std::span<const std::byte> range) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + range.size()) / page * page;
  // Pages that hold other bytes too stay. A refusal costs memory, no correctness.
  if (end > first) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace transept
