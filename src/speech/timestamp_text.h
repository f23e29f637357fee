// Formats times for subtitles and people. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace transept {

// Rounds to milliseconds, half to even, as Python's round(). Negative and NaN: 0.
int64_t milliseconds(double seconds);

// Returns "01:02.345", or with hours "00:01:02.345", rounded as milliseconds(). Hours appear with `always_hours` or if
// they are not 0.
std::string format_timestamp(double seconds, bool always_hours, char decimal_mark);

}  // namespace transept
