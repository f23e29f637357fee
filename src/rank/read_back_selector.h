// Selection for devices that compute scores. Of rows whose requests need no more (sampling/row_looks.h) the device
// edits and reduces the scores, if it has the op, and a few numbers are read back. Other rows are read back whole, and
// the processor edits and chooses as it does with its own (sampling/select.h). Which of the two it is depends on the
// request alone.
#pragma once

#include <memory>

#include "base/isa.h"
#include "base/thread_pool.h"
#include "sampling/selector.h"

namespace transept {

// Borrows the threads. Not thread-safe: it keeps the rows that it has read.
std::unique_ptr<const Selector> make_read_back_selector(ThreadPool& threads, Isa isa);

}  // namespace transept
