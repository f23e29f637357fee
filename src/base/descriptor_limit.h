// The limit of open files and connections of the process. Call before threads start.
#pragma once

#include <cstdint>

namespace transept {

// Raises the soft limit of open descriptors to the hard one: the soft one is small for programs that use select(), and
// Transept does not. Returns the limit now in force; if raising fails the old one, and the greatest uint64 if the
// system does not report a limit.
uint64_t raise_descriptor_limit();

}  // namespace transept
