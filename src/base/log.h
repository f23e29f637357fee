// Log lines for people, on standard error or to a sink (base/log_sink.h). Thread-safe; each call writes one line. Set
// the level before threads start; the default is kInfo.
#pragma once

#include <string_view>

#include "base/log_level.h"
#include "base/strings.h"

namespace transept {

void set_log_level(LogLevel level);  // writes levels up to this one; errors always
LogLevel log_level();
// Writes whatever the level: the callers below check it.
void write_log(LogLevel level, std::string_view message);

template <typename... Parts>
void log_info(const Parts&... parts) {
  if (log_level() >= LogLevel::kInfo) write_log(LogLevel::kInfo, str_cat(parts...));
}
template <typename... Parts>
void log_warning(const Parts&... parts) {
  if (log_level() >= LogLevel::kWarning) write_log(LogLevel::kWarning, str_cat(parts...));
}
template <typename... Parts>
void log_error(const Parts&... parts) {
  write_log(LogLevel::kError, str_cat(parts...));
}

}  // namespace transept
