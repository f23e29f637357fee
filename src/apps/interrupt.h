#pragma once

namespace transept {

// From here on SIGINT (and SIGTERM) is noted instead of ending the process; a second one ends it.
void catch_interrupts();
bool interrupted();

}  // namespace transept
