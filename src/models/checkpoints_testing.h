// For tests: the committed checkpoints, one or more of every family.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/source_dir_testing.h"

namespace transept::testing {

inline std::string checkpoint_path(const std::string& folder) { return source_dir() + "/tests/models/" + folder; }

// Folders below tests/models, by name. A folder takes part in every test over them by being there.
inline std::vector<std::string> checkpoints() {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint_path(""))) {
    folders.push_back(entry.path().filename().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// As a part of a test's name.
inline std::string test_name(std::string folder) {
  std::replace(folder.begin(), folder.end(), '-', '_');
  return folder;
}

}  // namespace transept::testing
