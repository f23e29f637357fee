#include "apps/live_console.h"

#include <string>

#include "base/strings.h"
#include "base/utf8.h"

namespace transept {
namespace {

// What a terminal gives a character, at most: too much leaves room unused, too little would break the line.
int columns_of(uint32_t code_point) {
  constexpr uint32_t kFirstWide = 0x1100;  // Hangul; beyond it most letters that are wide
  return code_point >= kFirstWide ? 2 : 1;
}

}  // namespace

void LiveConsole::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), out_) != text.size()) is_ok_ = false;
}

void LiveConsole::flush() {
  if (std::fflush(out_) != 0) is_ok_ = false;
}

void LiveConsole::erase_open() {
  if (num_open_columns_ > 0) write(str_cat("\x1b[", num_open_columns_, "D\x1b[K"));
  num_open_columns_ = 0;
}

void LiveConsole::confirmed(std::string_view text) {
  erase_open();
  const std::string clean = sanitize_utf8(text);
  write(clean);
  flush();
  has_text_ = has_text_ || !clean.empty();
  for (std::string_view rest = clean; num_columns_ > 0 && !rest.empty();) {
    const Utf8Step step = read_utf8(rest);
    const int width = columns_of(step.code_point);
    column_ = column_ + width > num_columns_ ? width : column_ + width;
    rest.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
}

void LiveConsole::open(std::string_view text) {
  if (num_columns_ == 0) return;
  erase_open();
  const std::string clean = sanitize_utf8(text);
  const int room = num_columns_ - column_ - 1;  // a full line would go on in the next one
  size_t num_bytes = 0;
  for (std::string_view rest = clean; !rest.empty();) {
    const Utf8Step step = read_utf8(rest);
    const int width = columns_of(step.code_point);
    if (num_open_columns_ + width > room) break;
    num_open_columns_ += width;
    num_bytes += static_cast<size_t>(step.num_bytes);
    rest.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  if (num_bytes > 0) write(str_cat("\x1b[2m", std::string_view(clean).substr(0, num_bytes), "\x1b[0m"));
  flush();
}

void LiveConsole::end_line() {
  erase_open();
  if (has_text_) write("\n");
  flush();
  has_text_ = false;
  column_ = 0;
}

}  // namespace transept
