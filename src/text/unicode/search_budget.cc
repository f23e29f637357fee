#include "text/unicode/search_budget.h"

#include <time.h>

namespace transept {
namespace {

constexpr double kSecondsPerByte = 4e-6;
// An attempt takes some 100 ns, a look at this clock three times as long.
constexpr uint32_t kAttemptsPerLook = 16;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

SearchBudget::SearchBudget(size_t text_bytes, double seconds)
    : deadline_(thread_seconds() + seconds + kSecondsPerByte * static_cast<double>(text_bytes)) {}

bool SearchBudget::spend_attempt() { return ++num_attempts_ % kAttemptsPerLook != 0 || !exhausted(); }

bool SearchBudget::exhausted() const { return thread_seconds() > deadline_; }

}  // namespace transept
