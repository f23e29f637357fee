// How many files and connections the process may have open.
#pragma once

#include <cstdint>

namespace transept {

// Raises the soft limit of open descriptors to the hard one, and gives the limit that holds now. The soft one is small
// for the sake of programs that use select(), of which this is none.
uint64_t raise_descriptor_limit();

}  // namespace transept
