// For tests: a redis-server of their own (redis_process_testing.h). Where none is installed the test is skipped.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "disagg/redis_process_testing.h"

namespace transept::testing {

// An answer's time for tests that do not mean it: long enough for a busy machine.
inline constexpr Duration kPatient = std::chrono::seconds(20);

class RedisServer final {
 public:
  // `options`: more of redis-server's.
  explicit RedisServer(std::vector<std::string> options = {}) : process_(std::move(options)) { start_or_skip(); }

  // What a test needs and this machine lacks; empty: nothing.
  static std::string what_is_missing() { return RedisProcess::what_is_missing(); }

  std::string path() const { return url().path; }
  RedisUrl url() const { return process_.url(); }

  void start() {
    if (!process_.start()) ADD_FAILURE() << "redis-server does not answer";
  }
  void stop() { process_.stop(); }
  void signal(int number) const { process_.signal(number); }

  // What redis-cli would say.
  RedisValue run(const RedisCommand& command) const {
    auto connection = RedisConnection::open(url(), RedisProcess::soon());
    EXPECT_TRUE(connection.ok()) << connection.status();
    auto replies = (*connection)->run(std::span(&command, 1), RedisProcess::soon());
    EXPECT_TRUE(replies.ok()) << replies.status();
    return replies->front();
  }

 private:
  // Within the fixture's constructor a skip keeps the test from beginning.
  void start_or_skip() {
    if (const std::string missing = what_is_missing(); !missing.empty()) GTEST_SKIP() << missing;
    start();
  }

  RedisProcess process_;
};

// Of tests that make servers themselves.
class WithRedis : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = RedisServer::what_is_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

}  // namespace transept::testing
