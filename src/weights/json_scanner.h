// Reads JSON of a known shape value by value, without building a tree. So a hostile header of 100 MB costs the memory
// of what is kept of it, not a multiple of its size, and repeated keys are seen. Used once on one text, by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/status.h"

namespace transept {

class JsonScanner final {
 public:
  // `text` must outlive the scanner.
  explicit JsonScanner(std::string_view text) : text_(text) {}

  // Errors of all functions below: kInvalidArgument with the reason and the byte offset.

  // Takes `c` (one of "{}[],:") if it comes next.
  bool take(char c);
  // Whether `c` comes next; takes nothing.
  bool next_is(char c);
  Status expect(char c);
  // Reads an object: for every member passes its key to `read_value`, which must read the value.
  Status members(FunctionRef<Status(std::string key)> read_value);
  // Reads a string and unescapes it; it must be valid UTF-8.
  StatusOr<std::string> string();
  // Reads a whole number from 0 to INT64_MAX, written without sign, point or exponent.
  StatusOr<int64_t> integer();
  // Skips any value, nested at most kMaxDepth deep.
  Status skip() { return skip(0); }
  // Checks that only white space is left.
  Status end();

  Status error(std::string_view reason) const;

 private:
  static constexpr int kMaxDepth = 64;

  void skip_space();
  Status skip(int depth);
  Status skip_list(int depth);
  Status skip_word(std::string_view word);
  Status skip_number();
  Status escape(std::string& out);
  StatusOr<uint32_t> hex4();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace transept
