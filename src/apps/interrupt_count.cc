#include "apps/interrupt_count.h"

#include <atomic>
#include <csignal>

namespace transept {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<int> count{0};
static_assert(std::atomic<int>::is_always_lock_free);

void note_interrupt(int) { count.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

void count_interrupts() {
  count.store(0, std::memory_order_relaxed);
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = SA_RESTART;  // lines that are being written are written whole
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGCHLD, SIG_DFL);
}

int num_interrupts() { return count.load(std::memory_order_relaxed); }

}  // namespace transept
