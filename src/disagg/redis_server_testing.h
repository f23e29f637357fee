// For tests: a redis-server of their own, in a folder of its own, behind a Unix socket. It forgets everything when it
// is stopped. Where none is installed the test is skipped.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/folder_testing.h"
#include "base/strings.h"
#include "disagg/redis_connection.h"
#include "disagg/redis_library.h"

namespace transept::testing {

// An answer's time for tests that do not mean it: long enough for a busy machine.
inline constexpr Duration kPatient = std::chrono::seconds(20);

class RedisServer final {
 public:
  // `options`: more of redis-server's.
  explicit RedisServer(std::vector<std::string> options = {}) : options_(std::move(options)) { start_or_skip(); }
  ~RedisServer() { stop(); }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // What a test needs and this machine lacks; empty: nothing.
  static std::string what_is_missing() {
    if (const Status status = load_redis(); !status.ok()) return str_cat("no shared library: ", error_message(status));
    return program().empty() ? "no redis-server is installed (Debian: redis-server)" : "";
  }

  std::string path() const { return folder_.path() + "/redis"; }
  RedisUrl url() const { return {.path = path()}; }

  void start() {
    const std::string file = program();
    std::vector<std::string> words = {file,           "--port", "0",     "--unixsocket", path(),      "--save", "",
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
      if (status.ok() || absl::IsPermissionDenied(status)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "redis-server does not answer";
  }
  void stop() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

  void signal(int number) const { ::kill(child_, number); }

  // What redis-cli would say.
  RedisValue run(const RedisCommand& command) const {
    auto connection = RedisConnection::open(url(), soon());
    EXPECT_TRUE(connection.ok()) << connection.status();
    auto replies = (*connection)->run(std::span(&command, 1), soon());
    EXPECT_TRUE(replies.ok()) << replies.status();
    return replies->front();
  }

 private:
  static std::string program() {
    const char* const folders = std::getenv("PATH");
    for (const std::string_view folder : split(folders == nullptr ? "" : folders, ':')) {
      std::string path = str_cat(folder, "/redis-server");
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
    return "";
  }
  static TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

  // Within the fixture's constructor a skip keeps the test from beginning.
  void start_or_skip() {
    if (const std::string missing = what_is_missing(); !missing.empty()) GTEST_SKIP() << missing;
    start();
  }

  const TestFolder folder_;
  const std::vector<std::string> options_;
  pid_t child_ = -1;
};

// Of tests that make servers themselves.
class WithRedis : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = RedisServer::what_is_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

}  // namespace transept::testing
