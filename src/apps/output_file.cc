#include "apps/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace transept {

StatusOr<OutputFile> OutputFile::open(const std::string& path, bool live, bool append) {
  if (path == "-") return OutputFile(stdout, "standard output", live);
  std::FILE* file = std::fopen(path.c_str(), append ? "ab" : "wb");
  if (file == nullptr) return invalid_argument(path, ": ", std::strerror(errno));
  return OutputFile(file, path, live);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)),
      path_(std::move(other.path_)),
      live_(other.live_),
      failed_(other.failed_) {}

OutputFile::~OutputFile() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

void OutputFile::write(std::string_view text) {
  failed_ |= std::fwrite(text.data(), 1, text.size(), file_) != text.size();
  if (live_) failed_ |= std::fflush(file_) != 0;
}

void OutputFile::write_line(std::string_view line) {
  failed_ |= std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fputc('\n', file_) == EOF;
  if (live_) failed_ |= std::fflush(file_) != 0;
}

Status OutputFile::close() {
  failed_ |= std::fflush(file_) != 0;
  if (file_ != stdout) failed_ |= std::fclose(file_) != 0;
  file_ = nullptr;
  return failed_ ? absl::DataLossError(path_ + ": not everything could be written") : ok_status();
}

Status check_output_apart(const Flags& flags, std::span<const std::string> inputs) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto place = [](const std::string& path, const char* stream) { return path == "-" ? stream : path; };
  const std::string given = flags.text_or("output", "-");
  const fs::path output = place(given, "/dev/stdout");
  if (!fs::is_regular_file(output, error)) return ok_status();
  for (const std::string& input : inputs) {
    if (!fs::equivalent(output, place(input, "/dev/stdin"), error)) continue;
    return invalid_argument(input == "-" ? "standard input" : input, ": is also ",
                            given == "-" ? "where standard output goes" : flags.name_of("output"));
  }
  return ok_status();
}

Status check_distinct_files(const Flags& flags, std::initializer_list<std::string_view> names) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (auto a = names.begin(); a != names.end(); ++a) {
    for (auto b = a + 1; b != names.end(); ++b) {
      const auto first = flags.text(*a), second = flags.text(*b);
      if (!first.has_value() || !second.has_value() || *first == "-" || *second == "-") continue;
      const bool same = fs::weakly_canonical(*first, error) == fs::weakly_canonical(*second, error) ||
                        fs::equivalent(*first, *second, error);
      if (same && !fs::is_character_file(*first, error)) {
        return invalid_argument(flags.name_of(*a), " and ", flags.name_of(*b), " name one file: ", *first);
      }
    }
  }
  return ok_status();
}

}  // namespace transept
