// For tests: the committed checkpoints, one or more of every family.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sanitized_testing.h"
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

// Under sanitizers every second folder, from `first` on (0 or 1); else all. A suite whose code other suites run, too,
// takes these: families have two folders side by side, and two suites with other firsts take all.
inline std::vector<std::string> in_turn(std::vector<std::string> folders, size_t first) {
  if (!kSanitized) return folders;
  std::vector<std::string> taken;
  for (size_t i = first; i < folders.size(); i += 2) taken.push_back(std::move(folders[i]));
  return taken;
}

// As a part of a test's name.
inline std::string test_name(std::string folder) {
  std::replace(folder.begin(), folder.end(), '-', '_');
  return folder;
}

}  // namespace transept::testing
