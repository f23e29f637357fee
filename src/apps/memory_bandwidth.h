// How fast this process reads memory: what bounds a decoding step, which reads all weights of the decoder once.
#pragma once

#include <cstdint>

namespace transept {

// Returns bytes a second, the best of several passes of `num_threads` threads over memory that no cache holds. Takes
// about a third of a second. 0: the system gives no memory for it.
double measure_memory_bandwidth(int num_threads);

}  // namespace transept
