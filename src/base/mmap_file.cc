#include "base/mmap_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace transept {

StatusOr<std::unique_ptr<MmapFile>> MmapFile::open(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for somebody to write to it. Regular files do not know it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int why = errno;
    const std::string message = str_cat(path, ": ", std::strerror(why));
    return why == ENOENT ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return invalid_argument(path, ": is not a regular file");
  }
  const size_t size = static_cast<size_t>(info.st_size);
  const void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const int why = errno;
      ::close(fd);
      return invalid_argument(path, ": cannot be mapped: ", std::strerror(why));
    }
  }
  return std::unique_ptr<MmapFile>(new MmapFile(path, fd, data, size));
}

MmapFile::~MmapFile() {
  if (size_ > 0) ::munmap(const_cast<void*>(data_), size_);
  ::close(fd_);
}

void MmapFile::read(size_t offset, std::span<std::byte> out) const {
  CHECK(offset <= size_ && out.size() <= size_ - offset, path_);
  for (size_t done = 0; done < out.size();) {
    const ssize_t count = ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    // As with mapped bytes, there is no going on without them.
    CHECK(count > 0, path_, ": was cut or cannot be read any more: ", count < 0 ? std::strerror(errno) : "end of file");
    done += static_cast<size_t>(count);
  }
}

void MmapFile::prefer_large_pages() const {
  // A refusal costs speed, no correctness.
  if (size_ > 0) ::madvise(const_cast<void*>(data_), size_, MADV_HUGEPAGE);
}

void MmapFile::release_pages(std::span<const std::byte> range) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + range.size()) / page * page;
  // Pages that hold other bytes too stay. A refusal costs memory, no correctness.
  if (end > first) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

StatusOr<std::string> read_file(const std::string& path, size_t max_bytes) {
  ASSIGN_OR_RETURN(const auto file, MmapFile::open(path));
  if (file->bytes().size() > max_bytes) {
    return invalid_argument(path, ": has ", file->bytes().size(), " bytes, more than the ", max_bytes, " allowed");
  }
  return std::string(file->text());
}

}  // namespace transept
