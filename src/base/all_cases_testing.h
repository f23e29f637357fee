// Whether a test goes through all of its cases.
#pragma once

#include <cstdlib>

namespace transept::testing {

// TRANSEPT_TEST_ALL is set, as `./dev test --slow` and `./dev check --slow` do. Without it tests that take long on a
// software device take some of their cases.
inline bool takes_all_cases() { return std::getenv("TRANSEPT_TEST_ALL") != nullptr; }

}  // namespace transept::testing
