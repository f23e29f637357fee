// Interrupts of the command line (SIGINT, SIGTERM). One flag for the process; interrupted() is thread-safe.
#pragma once

namespace transept {

// From here on the first SIGINT or SIGTERM is noted instead of ending the process; a second one ends it.
void catch_interrupts();
bool interrupted();

}  // namespace transept
