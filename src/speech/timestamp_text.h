// Times as subtitles and people read them. Pure: thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace transept {

// As Python's round() gives them: half to even. What is negative or no number is 0.
int64_t milliseconds(double seconds);

// "01:02.345", with hours "00:01:02.345": milliseconds rounded half to even, with carry; hours always, or when not 0.
std::string format_timestamp(double seconds, bool always_hours, char decimal_mark);

}  // namespace transept
