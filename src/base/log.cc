#include "base/log.h"

#include <atomic>
#include <cstdio>

#include "base/log_sink.h"
#include "base/quoted.h"

namespace transept {
namespace {

// The process-wide settings: a log line must be possible from anywhere, and carries no state that results depend on.
std::atomic<LogLevel> current_level{LogLevel::kInfo};
std::atomic<LogSink> current_sink{nullptr};

}  // namespace

void set_log_level(LogLevel level) { current_level.store(level, std::memory_order_relaxed); }
LogLevel log_level() { return current_level.load(std::memory_order_relaxed); }

void set_log_sink(LogSink sink) { current_sink.store(sink, std::memory_order_relaxed); }

void write_log(LogLevel level, std::string_view message) {
  if (const LogSink sink = current_sink.load(std::memory_order_relaxed); sink != nullptr) return sink(level, message);
  const char* prefix = level == LogLevel::kError ? "error: " : level == LogLevel::kWarning ? "warning: " : "";
  const std::string line = str_cat(prefix, printable(message), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace transept
