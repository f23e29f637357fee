#include "base/source_dir_testing.h"

namespace transept {

std::string source_dir() { return TRANSEPT_SOURCE_DIR; }

}  // namespace transept
