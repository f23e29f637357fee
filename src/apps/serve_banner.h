// The lines that `transept serve` prints when it is ready. Called by its main thread.
#pragma once

#include <string>

#include "base/clock.h"
#include "server/server.h"

namespace transept {

// "0.12 s".
std::string format_seconds(Duration duration);

// Prints to stderr what is served where, and warns of a server that is open to all or logs prompts.
void print_banner(const Server& server, Duration startup);

}  // namespace transept
