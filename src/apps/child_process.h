// A program that was started, in a process group of its own: a terminal's Ctrl-C does not reach it. Its standard input
// is empty, its standard error is read here, its standard output is ours; no other descriptor is handed on, but for one
// that the command names. The owner
// reads and polls it. It ends with its owner, its group with it. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace transept {

// How a process ended.
struct ChildEnd {
  bool is_signal = false;
  int code = 0;  // what it returned, or the signal that ended it

  bool is_ok() const { return !is_signal && code == 0; }
  std::string text() const;  // "ended with code 2", "was ended by signal 9 (Killed)"

  bool operator==(const ChildEnd&) const = default;
};

class ChildProcess final {
 public:
  struct Command {
    std::string program;                   // a path
    std::vector<std::string> arguments;    // argv: the program's name first
    std::vector<std::string> environment;  // NAME=VALUE
    int inherited = -1;                    // a descriptor of ours that it has as kInherited; -1: none
  };
  static constexpr int kInherited = 4;
  // A longer line is given in pieces of this size.
  static constexpr size_t kMaxLineBytes = 16 << 10;

  // Starts the program; returns when it runs. It is sent SIGTERM when the calling thread ends: call on a thread that
  // lives as long as the owner. Signals of the child are as a shell would give them, whatever this process ignores or
  // blocks. Errors: kNotFound, kPermissionDenied and others, the program cannot be run (names it); kResourceExhausted,
  // no descriptor or process is left.
  static StatusOr<std::unique_ptr<ChildProcess>> start(const Command& command);
  // Kills the group, and waits for the child.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // How the child ended, if it has. What is left of its group is killed then. Never waits.
  const std::optional<ChildEnd>& poll();
  // No-op once the end is known.
  void send_signal(int signal);

  // What it has written since, line by line, without their ends; empty if no line is whole. Gives about 64 KiB a call.
  // Once the end is known, a last line without an end is given, too. Never waits.
  std::vector<std::string> read_lines();
  // Becomes readable when there is more, or the end; -1: nothing more comes.
  int descriptor() const { return output_; }

 private:
  ChildProcess(pid_t pid, int output) : pid_(pid), output_(output) {}
  void reap();
  void take_pieces(std::vector<std::string>& lines);

  const pid_t pid_;
  int output_;
  std::string rest_;  // read, and not given yet
  std::optional<ChildEnd> end_;
};

}  // namespace transept
