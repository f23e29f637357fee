#include "comm/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <limits>

namespace transept {

void Bell::ring() {
  if (num_sleepers.load(std::memory_order_seq_cst) > 0) ring_all();
}

void Bell::ring_all() {
  count.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &count, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

void Bell::sleep(uint32_t seen, TimePoint until) {
  const Duration left = until - std::chrono::steady_clock::now();
  if (left <= Duration::zero()) return;
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  const timespec time = {.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000),
                         .tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000)};
  syscall(SYS_futex, &count, FUTEX_WAIT, seen, &time, nullptr, 0);
}

}  // namespace transept
