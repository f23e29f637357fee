#include "capi/log_callback.h"

#include <atomic>
#include <string>

#include "base/log.h"
#include "base/log_sink.h"
#include "base/mutex.h"
#include "capi/border.h"

namespace transept {
namespace {

// A sink is a function without state, so the state is the process's.
Mutex callback_mutex;
transept_log_fn callback ABSL_GUARDED_BY(callback_mutex) = nullptr;
void* callback_data ABSL_GUARDED_BY(callback_mutex) = nullptr;
std::atomic<bool> level_is_set = false;

// A line that the callback's own calls write is dropped: the lock is held.
thread_local bool is_inside = false;

void call_back(LogLevel level, std::string_view message) {
  if (is_inside) return;
  const std::string line(message);  // with a zero byte behind it
  const MutexLock lock(callback_mutex);
  if (callback == nullptr) return;
  is_inside = true;
  callback(callback_data, static_cast<int32_t>(level), as_text(line));
  is_inside = false;
}

}  // namespace

void use_quiet_log() {
  if (!level_is_set.exchange(true)) set_log_level(LogLevel::kWarning);
}

Status set_log_callback(int32_t level, transept_log_fn log, void* data) {
  if (level < TRANSEPT_LOG_ERROR || level > TRANSEPT_LOG_INFO) {
    return field_error("level", str_cat("level is ", level, "; it must be a TRANSEPT_LOG_ constant"));
  }
  if (is_inside) return absl::FailedPreconditionError("the log's callback cannot be set from inside it");
  level_is_set = true;
  set_log_level(static_cast<LogLevel>(level));
  const MutexLock lock(callback_mutex);
  callback = log;
  callback_data = data;
  set_log_sink(log != nullptr ? call_back : nullptr);
  return ok_status();
}

}  // namespace transept
