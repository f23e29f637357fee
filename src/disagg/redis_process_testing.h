// For tests and benchmarks: a redis-server of their own, in a folder of its own, behind a Unix socket. It forgets
// everything when it is stopped.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/folder_testing.h"
#include "base/strings.h"
#include "disagg/redis_connection.h"
#include "disagg/redis_library.h"

namespace transept::testing {

class RedisProcess final {
 public:
  // `options`: more of redis-server's.
  explicit RedisProcess(std::vector<std::string> options = {}) : options_(std::move(options)) {}
  ~RedisProcess() { stop(); }
  RedisProcess(const RedisProcess&) = delete;
  RedisProcess& operator=(const RedisProcess&) = delete;

  // What this machine lacks; empty: nothing.
  static std::string what_is_missing() {
    if (const Status status = load_redis(); !status.ok()) return str_cat("no shared library: ", error_message(status));
    return program().empty() ? "no redis-server is installed (Debian: redis-server)" : "";
  }

  RedisUrl url() const { return {.path = folder_.path() + "/redis"}; }

  // Whether it answers.
  bool start() {
    const std::string file = program(), path = url().path;
    std::vector<std::string> words = {file,           "--port", "0",     "--unixsocket", path,        "--save", "",
                                      "--appendonly", "no",     "--dir", folder_.path(), "--logfile", "log"};
    words.insert(words.end(), options_.begin(), options_.end());
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execv(file.c_str(), arguments.data());
      ::_exit(127);
    }
    for (int i = 0; i < 2000; ++i) {
      // One that asks for a password is there, too.
      const Status status = RedisConnection::open(url(), soon()).status();
      if (status.ok() || absl::IsPermissionDenied(status)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  void stop() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  void signal(int number) const { ::kill(child_, number); }

  static TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

 private:
  static std::string program() {
    const char* const folders = std::getenv("PATH");
    for (const std::string_view folder : split(folders == nullptr ? "" : folders, ':')) {
      std::string path = str_cat(folder, "/redis-server");
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
    return "";
  }

  const TestFolder folder_;
  const std::vector<std::string> options_;
  pid_t child_ = -1;
};

}  // namespace transept::testing
