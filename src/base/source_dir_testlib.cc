#include "base/source_dir_testing.h"

namespace transept::testing {

std::string source_dir() { return TRANSEPT_SOURCE_DIR; }

}  // namespace transept::testing
