#pragma once

#include <string>

#include "base/clock.h"
#include "server/server.h"

namespace transept {

// "0.12 s".
std::string format_seconds(Duration duration);

// What is served where, on stderr; and warnings of doors that stand open.
void print_banner(const Server& server, Duration startup);

}  // namespace transept
