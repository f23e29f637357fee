// The output of a verb, and checks that it is not also an input. An OutputFile is owned by its verb.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "apps/flags.h"
#include "base/status.h"

namespace transept {

// Writes lines to a file or to standard output ("-"), and flushes each if `live`. Not thread-safe.
class OutputFile final {
 public:
  // `append`: behind what the file holds; else it is emptied. Errors: the file cannot be created (names it).
  static StatusOr<OutputFile> open(const std::string& path, bool live, bool append = false);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  // Whether no write has failed so far.
  bool is_ok() const { return !failed_; }

  void write(std::string_view text);
  void write_line(std::string_view line);
  // Errors: something could not be written (a full disk, a closed pipe).
  Status close();

 private:
  OutputFile(std::FILE* file, std::string path, bool live) : file_(file), path_(std::move(path)), live_(live) {}

  std::FILE* file_;
  std::string path_;
  bool live_;
  bool failed_ = false;
};

// Errors: --output names one of the input files, or standard output goes there. Names both.
Status check_output_apart(const Flags& flags, std::span<const std::string> inputs);

// Errors: two of these flags name one file (a result would overwrite input that is still to be read). Names both flags.
Status check_distinct_files(const Flags& flags, std::initializer_list<std::string_view> names);

}  // namespace transept
