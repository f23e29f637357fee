#include "apps/line_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace transept {
namespace {

constexpr size_t kChunk = size_t{1} << 16;

}  // namespace

StatusOr<LineReader> LineReader::open(const std::string& path) {
  if (path == "-") return LineReader(STDIN_FILENO, "standard input");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return invalid_argument(path, ": ", std::strerror(errno));
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(fd);
    return invalid_argument(path, ": is a folder");
  }
  return LineReader(fd, path);
}

LineReader::~LineReader() {
  if (fd_ > STDIN_FILENO) ::close(fd_);
}

LineReader::LineReader(LineReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      ended_(other.ended_),
      max_bytes_(other.max_bytes_),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      searched_(other.searched_),
      cut_(std::move(other.cut_)),
      skipping_(other.skipping_),
      had_carriage_return_(other.had_carriage_return_),
      status_(std::move(other.status_)),
      path_(std::move(other.path_)) {}

// Takes a whole line from the buffer, if there is one.
bool LineReader::take_line(std::string& line) {
  const size_t end = buffer_.find('\n', searched_);
  if (end != std::string::npos) {
    line = skipping_ ? std::exchange(cut_, {}) : buffer_.substr(begin_, std::min(end - begin_, max_bytes_ + 1));
    skipping_ = false;
    begin_ = searched_ = end + 1;
    drop_carriage_return(line);
    return true;
  }
  searched_ = buffer_.size();
  if (!ended_ && searched_ - begin_ <= max_bytes_) return false;
  // The file ends without a line end, or the line is too long to keep.
  if (!skipping_) cut_ = buffer_.substr(begin_, max_bytes_ + 1);
  buffer_.clear();
  begin_ = searched_ = 0;
  skipping_ = !ended_;
  if (skipping_ || cut_.empty()) return false;
  line = std::exchange(cut_, {});
  drop_carriage_return(line);
  return true;
}

// One that ends a line; not one at which a long line was cut.
void LineReader::drop_carriage_return(std::string& line) {
  had_carriage_return_ = line.ends_with('\r') && line.size() <= max_bytes_;
  if (had_carriage_return_) line.pop_back();
}

LineReader::Result LineReader::next(bool wait, std::string& line) {
  while (true) {
    if (take_line(line)) return Result::kLine;
    if (ended_) return Result::kEnd;
    if (!wait) {
      pollfd ready{fd_, POLLIN, 0};
      const int num_ready = ::poll(&ready, 1, 0);
      if (num_ready == 0 || (num_ready < 0 && errno == EINTR)) return Result::kNothingYet;
    }
    buffer_.erase(0, begin_);
    searched_ -= begin_;
    begin_ = 0;
    const size_t size = buffer_.size();
    buffer_.resize(size + kChunk);
    const ssize_t got = ::read(fd_, buffer_.data() + size, kChunk);
    const int why = errno;
    buffer_.resize(size + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && why == EINTR) return Result::kNothingYet;
    if (got < 0) status_ = absl::DataLossError(str_cat(path_, ": ", std::strerror(why)));
    if (got <= 0) ended_ = true;
  }
}

}  // namespace transept
