#include "base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace transept {

StatusOr<std::unique_ptr<InputFile>> InputFile::open(const std::string& path) {
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
  return std::unique_ptr<InputFile>(new InputFile(path, fd, static_cast<size_t>(info.st_size)));
}

InputFile::~InputFile() { ::close(fd_); }

Status InputFile::read(size_t offset, std::span<std::byte> out) const {
  CHECK(offset <= size_ && out.size() <= size_ - offset, path_);
  for (size_t done = 0; done < out.size();) {
    const ssize_t count = ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return invalid_argument("cannot be read: ", std::strerror(errno));
    if (count == 0) {
      struct stat info {};
      const bool is_known = ::fstat(fd_, &info) == 0;
      return invalid_argument("was cut while it was read: it had ", size_, " bytes, and has ",
                              is_known ? static_cast<size_t>(info.st_size) : offset + done, " now");
    }
    done += static_cast<size_t>(count);
  }
  return ok_status();
}

StatusOr<std::string> read_file(const std::string& path, size_t max_bytes) {
  ASSIGN_OR_RETURN(const auto file, InputFile::open(path));
  if (file->size() > max_bytes) {
    return invalid_argument(path, ": has ", file->size(), " bytes, more than the ", max_bytes, " allowed");
  }
  std::string content(file->size(), '\0');
  const Status read = file->read(0, std::as_writable_bytes(std::span<char>(content.data(), content.size())));
  if (!read.ok()) return with_prefix(read, path);
  return content;
}

}  // namespace transept
