// How the process ends where it cannot go on: by a sentence on standard error and exit code 2, whatever thread finds
// out.
//
// * memory or a thread that the system does not give (std::bad_alloc, std::system_error) and no caller catches;
// * a mapped file that was cut (base/mapped_ranges.h);
// * a limit on the size of files (ulimit -f) is no end: writing fails, and is told where it is tried.
//
// Failed CHECKs and faults are bugs, and end as before: aborted.
#pragma once

namespace transept {

// Once, before threads start.
void prepare_clear_ends();

}  // namespace transept
