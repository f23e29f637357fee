// Reads the lines of several text files, one after the other, as a filter does: `-` is standard input. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/line_reader.h"
#include "base/status.h"

namespace transept {

struct TextLine {
  std::string text;   // without its end, and without a byte order mark at the file's beginning
  std::string place;  // "notes.txt:12": the file as it was given, the number from 1
  bool is_crlf = false;
  bool is_too_long = false;  // more than max_bytes: text is the front of it
};

class TextLines final {
 public:
  // Errors: a file that cannot be read (names it). Opens and reads nothing: a pipe stays whole.
  static StatusOr<TextLines> open(std::vector<std::string> paths);

  // Returns kNothingYet while a pipe is silent.
  LineReader::Result next(TextLine& line);
  // For poll(), after kNothingYet.
  int fd() const { return reader_.has_value() ? reader_->fd() : -1; }
  // Errors: a file could not be opened or read midway; what came before was returned.
  const Status& status() const { return status_; }

  // Returns the number of lines, if all are plain files. Reads them once.
  std::optional<int64_t> count() const;

  size_t max_bytes() const { return max_bytes_; }
  void set_max_bytes(size_t max_bytes) { max_bytes_ = max_bytes; }

 private:
  explicit TextLines(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  bool open_next();

  std::vector<std::string> paths_;
  size_t num_opened_ = 0;
  std::optional<LineReader> reader_;  // of paths_[num_opened_ - 1]
  int64_t number_ = 0;                // of its last line
  size_t max_bytes_ = size_t{8} << 20;
  Status status_;
};

// Whether the text is empty or only white space (Unicode's).
bool is_blank(std::string_view text);

}  // namespace transept
