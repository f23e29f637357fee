// String helpers. Debian builds Abseil with its own string_view type, so absl/strings does not take std::string_view:
// text goes through this header instead. Pure functions: thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

void append_to(std::string& out, std::string_view part);
void append_to(std::string& out, float value);  // the shortest form that reads back as the same number: 0.7f is 0.7
void append_to(std::string& out, double value);
void append_to(std::string& out, int64_t value);
void append_to(std::string& out, uint64_t value);

// Concatenates text and numbers. A char is text; a bool is "true" or "false".
template <typename... Parts>
std::string str_cat(const Parts&... parts) {
  std::string out;
  [[maybe_unused]] const auto append = [&out](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::same_as<Part, bool>) {
      append_to(out, std::string_view(part ? "true" : "false"));
    } else if constexpr (std::same_as<Part, char>) {
      append_to(out, std::string_view(&part, 1));
    } else if constexpr (std::same_as<Part, float>) {
      append_to(out, part);
    } else if constexpr (std::floating_point<Part>) {
      append_to(out, static_cast<double>(part));
    } else if constexpr (std::signed_integral<Part>) {
      append_to(out, static_cast<int64_t>(part));
    } else if constexpr (std::unsigned_integral<Part>) {
      append_to(out, static_cast<uint64_t>(part));
    } else {
      append_to(out, std::string_view(part));
    }
  };
  (append(parts), ...);
  return out;
}

// Joins "a", "b", "c" with ", " to "a, b, c".
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// Wraps words at `width` columns, continuation lines indented. The first line begins at column `indent`.
std::string wrapped(std::string_view text, size_t indent, size_t width);

// Views into `text`. Keeps empty parts: "" is one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);
// Removes spaces, tabs and line ends at both ends.
std::string_view trim(std::string_view text);

// Returns the candidate with the least edit distance to `word`, in bytes, for "unknown flag; did you mean ...?".
// Returns "" if every distance exceeds a third of its length (at least 1, at most 3).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// 1536 -> "1.5 KiB". One decimal below 100 of a unit; TiB at most.
std::string format_bytes(uint64_t bytes);

}  // namespace transept
