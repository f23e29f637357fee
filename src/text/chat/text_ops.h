// Python's operations on str, over UTF-8: positions count code points, white space is that of str.isspace(). Views are
// into the argument. Functions, thread-safe. REQUIRES: texts are valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transept::jinja {

bool is_space(uint32_t code_point);
// In bytes.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

enum class Sides : uint8_t { kBoth, kLeft, kRight };
// strip(), lstrip(), rstrip(). Without `characters`, white space.
std::string_view strip(std::string_view text, std::optional<std::string_view> characters, Sides sides);

// Where `wanted` first stands from byte `from` on, and where it last stands; npos: nowhere. In linear time, which
// std::string_view does not promise: both may be long and hostile.
size_t find_text(std::string_view text, std::string_view wanted, size_t from = 0);
size_t find_last_text(std::string_view text, std::string_view wanted);

// Without `separator`: at runs of white space, without empty parts. At most `max_splits` splits, from the left or from
// the right; negative: any number. REQUIRES: the separator is not empty.
std::vector<std::string_view> split_text(std::string_view text, std::optional<std::string_view> separator,
                                         int64_t max_splits, bool from_right);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// The byte where the character of that index begins; text.size() for the one past the end. `num_chars` is the text's.
size_t byte_of(std::string_view text, size_t num_chars, size_t index);
// The number of characters before that byte.
size_t chars_before(std::string_view text, size_t byte);

// str.capitalize(), str.title(), and the filter `title` of jinja2, which cuts at white space and any of -({[< .
std::string capitalize(std::string_view text);
std::string title(std::string_view text);
std::string title_words(std::string_view text);

// str.islower(), str.isupper(): some letters, all of them of that case.
bool all_lower(std::string_view text);
bool all_upper(std::string_view text);

// int() and float() of a text.
std::optional<int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

}  // namespace transept::jinja
