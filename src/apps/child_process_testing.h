// For tests of child processes: scripts of the shell, waiting for what must come, and what a process holds.
#pragma once

#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

#include "apps/child_process.h"

namespace transept::testing {

inline ChildProcess::Command shell(const std::string& script) {
  return {.program = "/bin/sh", .arguments = {"sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

// Whether it came within a minute.
inline bool comes(const std::function<bool()>& is_there) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    if (is_there()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

inline std::ptrdiff_t num_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

// Whether this process has a child, a zombie included.
inline bool has_children() { return ::waitpid(-1, nullptr, WNOHANG | __WALL) != -1 || errno != ECHILD; }

}  // namespace transept::testing
