// Selection for devices that compute scores alone: whole rows of scores are read back, and the processor edits and
// chooses as it does with its own (sampling/select.h).
#pragma once

#include <memory>

#include "base/isa.h"
#include "base/thread_pool.h"
#include "sampling/selector.h"

namespace transept {

// Borrows the threads. Not thread-safe: it keeps the rows that it has read.
std::unique_ptr<const Selector> make_read_back_selector(ThreadPool& threads, Isa isa);

}  // namespace transept
