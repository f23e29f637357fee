// The severity of a log line, most severe first.
#pragma once

namespace transept {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

}  // namespace transept
