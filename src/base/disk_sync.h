// Waits for the disk. A pure function: thread-safe.
#pragma once

#include <string>

#include "base/status.h"

namespace transept {

// Waits until the disk has a file's bytes, or a folder's names. Errors (kInvalidArgument): the path cannot be opened or
// synced; the message names it. File systems that sync no folders are no error.
Status put_on_disk(const std::string& path);

}  // namespace transept
