// Reads lines of a file or of standard input as they come: work continues while a pipe is silent. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace transept {

class LineReader final {
 public:
  enum class Result : uint8_t { kLine, kNothingYet, kEnd };

  // "-": standard input. Errors: the file cannot be opened (names it).
  static StatusOr<LineReader> open(const std::string& path);
  ~LineReader();
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;

  // Reads the next line without its end (LF, CRLF, or the end of the file). Returns kNothingYet only if `wait` is
  // false, or on a signal. A line longer than max_bytes is cut to max_bytes + 1 (so its length shows it), and its rest
  // is skipped.
  Result next(bool wait, std::string& line);

  // Whether the last line ended in CRLF.
  bool had_carriage_return() const { return had_carriage_return_; }

  // For poll(), while next(false) gives kNothingYet.
  int fd() const { return fd_; }

  // Errors: a read failed midway (names the file); what came before was returned.
  const Status& status() const { return status_; }

  size_t max_bytes() const { return max_bytes_; }
  void set_max_bytes(size_t max_bytes) { max_bytes_ = max_bytes; }

 private:
  LineReader(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  bool take_line(std::string& line);
  void drop_carriage_return(std::string& line);

  int fd_;
  bool ended_ = false;
  size_t max_bytes_ = size_t{8} << 20;
  std::string buffer_;
  size_t begin_ = 0;     // start of the unread part of buffer_
  size_t searched_ = 0;  // no line end before this place
  std::string cut_;      // the front of a line that is too long
  bool skipping_ = false;
  bool had_carriage_return_ = false;
  Status status_;
  std::string path_;
};

}  // namespace transept
