#include "apps/interrupt.h"

#include <csignal>

namespace transept {
namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t is_interrupted = 0;

void note_interrupt(int signal) {
  is_interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;  // without SA_RESTART: a read that waits returns
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return is_interrupted != 0; }

}  // namespace transept
