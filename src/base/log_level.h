// How much notices matter.
#pragma once

namespace transept {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

}  // namespace transept
