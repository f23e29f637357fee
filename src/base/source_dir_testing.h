// Where the sources lie, for tests that read files of the tree.
//
// The path is in one object file alone: every other one is the same wherever the tree was cloned, which is what lets a
// compiler cache know it again.
#pragma once

#include <string>

namespace transept {

// The root of the source tree, absolute, without a slash at its end. Any thread.
std::string source_dir();

}  // namespace transept
