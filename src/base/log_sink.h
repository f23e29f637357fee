// Where notices go, for programs whose logs machines read. Set before threads start.
#pragma once

#include <string_view>

#include "base/log_level.h"

namespace transept {

// Writes one notice; called by any thread. Null: a line of text on stderr, as from the start.
using LogSink = void (*)(LogLevel level, std::string_view message);
void set_log_sink(LogSink sink);

}  // namespace transept
