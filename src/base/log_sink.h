// Redirects log lines, for logs that machines read (serve --log-format json). Set before threads start.
#pragma once

#include <string_view>

#include "base/log_level.h"

namespace transept {

// Writes one log line; any thread calls it, so it must be thread-safe. Null, the default: text on standard error.
using LogSink = void (*)(LogLevel level, std::string_view message);
void set_log_sink(LogSink sink);

}  // namespace transept
