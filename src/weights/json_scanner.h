// Reads JSON of a known shape straight through, value by value, without building a tree: a hostile header of 100 MB
// costs the memory of what is kept of it, not a multiple of its size; and a key that stands twice is seen. Used once on
// one text, by one thread.
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

  // Errors of all of these: kInvalidArgument with the reason and the byte where it is.

  // Takes `c` (one of "{}[],:") if it comes next.
  bool take(char c);
  // It comes next; nothing is taken.
  bool next_is(char c);
  Status expect(char c);
  // An object: for every member its key, and then `read_value`, which must read the value.
  Status members(FunctionRef<Status(std::string key)> read_value);
  // A string, unescaped; it must be valid UTF-8.
  StatusOr<std::string> string();
  // A whole number from 0 to INT64_MAX, written without sign, point or exponent.
  StatusOr<int64_t> integer();
  // Any value, nested no deeper than kMaxDepth.
  Status skip() { return skip(0); }
  // Nothing but white space is left.
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
