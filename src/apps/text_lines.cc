#include "apps/text_lines.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/utf8.h"
#include "text/unicode/unicode.h"

namespace transept {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Status check_readable(const std::string& path) {
  if (path == "-") return ok_status();
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || ::access(path.c_str(), R_OK) != 0) {
    return invalid_argument(path, ": ", std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) return invalid_argument(path, ": is a folder");
  return ok_status();
}

// Of a plain file; nullopt: it is none, or cannot be read.
std::optional<int64_t> count_lines(const std::string& path) {
  struct stat info {};
  if (path == "-" || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chunk(size_t{1} << 16);
  int64_t count = 0;
  char last = '\n';
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    const auto end = chunk.begin() + file.gcount();
    count += std::count(chunk.begin(), end, '\n');
    last = end[-1];
  }
  if (!file.eof()) return std::nullopt;
  return count + (last == '\n' ? 0 : 1);
}

}  // namespace

StatusOr<TextLines> TextLines::open(std::vector<std::string> paths) {
  for (const std::string& path : paths) RETURN_IF_ERROR(check_readable(path));
  return TextLines(std::move(paths));
}

bool TextLines::open_next() {
  reader_.reset();
  if (num_opened_ == paths_.size()) return false;
  StatusOr<LineReader> opened = LineReader::open(paths_[num_opened_++]);
  if (!opened.ok()) {
    status_ = opened.status();
    return false;
  }
  reader_.emplace(std::move(opened).value());
  reader_->set_max_bytes(max_bytes_);
  number_ = 0;
  return true;
}

LineReader::Result TextLines::next(TextLine& line) {
  while (status_.ok() && (reader_.has_value() || open_next())) {
    const LineReader::Result got = reader_->next(false, line.text);
    if (got == LineReader::Result::kNothingYet) return got;
    if (got == LineReader::Result::kEnd) {
      status_ = reader_->status();
      reader_.reset();
      continue;
    }
    const std::string& path = paths_[num_opened_ - 1];
    line.place = str_cat(path == "-" ? "standard input" : path, ":", ++number_);
    line.is_crlf = reader_->had_carriage_return();
    line.is_too_long = line.text.size() > max_bytes_;
    if (number_ == 1 && line.text.starts_with(kByteOrderMark)) line.text.erase(0, kByteOrderMark.size());
    return got;
  }
  return LineReader::Result::kEnd;
}

std::optional<int64_t> TextLines::count() const {
  int64_t total = 0;
  for (const std::string& path : paths_) {
    const std::optional<int64_t> lines = count_lines(path);
    if (!lines.has_value()) return std::nullopt;
    total += *lines;
  }
  return total;
}

bool is_blank(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = read_utf8(text);
    if (step.kind != Utf8Step::Kind::kValid || !is_white_space(step.code_point)) return false;
    text.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  return true;
}

}  // namespace transept
