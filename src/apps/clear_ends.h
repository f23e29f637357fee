// Ends the process when it cannot continue: with a sentence on standard error and exit code 2, whichever thread
// notices.
//
// * the system gives no memory or no thread (std::bad_alloc, std::system_error), and the exception is not caught;
// * a mapped file was truncated (base/mapped_ranges.h);
// * a limit on the size of files (ulimit -f) does not end the process: the write fails, and its caller reports it.
//
// Failed CHECKs and faults are bugs, and still abort.
#pragma once

namespace transept {

// Call once, before threads start.
void prepare_clear_ends();

}  // namespace transept
