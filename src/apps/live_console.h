// Prints text that is still being spoken. On a terminal what is open stands dim behind the confirmed words, as far as
// the line has room, and is overwritten; elsewhere only confirmed words are written, each at once. Not thread-safe.
#pragma once

#include <cstdio>
#include <string_view>

namespace transept {

class LiveConsole final {
 public:
  // Writes to `out`, which must outlive this. `num_columns`: of the terminal; 0: `out` is none.
  LiveConsole(std::FILE* out, int num_columns) : out_(out), num_columns_(num_columns) {}

  void confirmed(std::string_view text);  // with the space before it
  void open(std::string_view text);       // replaces the last one; no effect without a terminal
  // Ends the line, if it has text.
  void end_line();

  bool is_ok() const { return is_ok_; }  // all could be written

 private:
  void write(std::string_view text);
  void flush();
  void erase_open();

  std::FILE* out_;
  int num_columns_;
  int column_ = 0;            // behind the confirmed text
  int num_open_columns_ = 0;  // of what is open, behind it
  bool has_text_ = false;     // in this line
  bool is_ok_ = true;
};

}  // namespace transept
