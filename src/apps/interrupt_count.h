// Interrupts of a process that ends others in order (SIGINT, SIGTERM), counted: apps/interrupt.h ends the process at
// the second. One count for the process. Thread-safe.
#pragma once

namespace transept {

// From here on SIGINT and SIGTERM are counted, from 0, and do nothing else. Children can be waited for, whatever the
// process inherited.
void count_interrupts();
int num_interrupts();

}  // namespace transept
