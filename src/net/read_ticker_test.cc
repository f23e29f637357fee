// A ticker of sockets: what has come, or has ended, is told once for each arming.
#include "net/read_ticker.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>

namespace transept {
namespace {

using namespace std::chrono_literals;

class ReadTickerTest : public ::testing::Test {
 protected:
  ReadTickerTest() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    watch = std::make_shared<ReadTicker::Watch>(ends_[0], [this] { ++num_calls; });
    ticker->add(watch);
  }
  ~ReadTickerTest() override {
    ticker->remove(watch);
    ticker.reset();
    for (const int end : ends_) ::close(end);
  }

  void run_for(std::chrono::milliseconds time) {
    io.restart();
    io.run_for(time);
  }
  void send() { EXPECT_EQ(::send(ends_[1], "x", 1, 0), 1); }
  int end() const { return ends_[1]; }

  boost::asio::io_context io;
  std::shared_ptr<ReadTicker> ticker = std::make_shared<ReadTicker>(io.get_executor());
  std::shared_ptr<ReadTicker::Watch> watch;
  int num_calls = 0;

 private:
  int ends_[2];
};

constexpr auto kSomeTicks = 4 * ReadTicker::kTick;

TEST_F(ReadTickerTest, WhatHasComeIsToldOnceForEachArming) {
  send();
  run_for(kSomeTicks);
  EXPECT_EQ(num_calls, 0);
  watch->arm();
  run_for(kSomeTicks);
  EXPECT_EQ(num_calls, 1);
  watch->arm();
  run_for(kSomeTicks);
  EXPECT_EQ(num_calls, 2);
}

TEST_F(ReadTickerTest, NothingIsToldOfASilentSocket) {
  watch->arm();
  run_for(kSomeTicks);
  EXPECT_EQ(num_calls, 0);
  send();
  run_for(kSomeTicks);
  EXPECT_EQ(num_calls, 1);
}

TEST_F(ReadTickerTest, AnEndIsTold) {
  watch->arm();
  ::shutdown(end(), SHUT_WR);
  run_for(kSomeTicks);
  EXPECT_EQ(num_calls, 1);
}

TEST_F(ReadTickerTest, WhatIsRemovedOrDisarmedIsNotTold) {
  send();
  watch->arm();
  watch->disarm();
  run_for(kSomeTicks);
  watch->arm();
  ticker->remove(watch);
  run_for(kSomeTicks);
  EXPECT_EQ(num_calls, 0);
}

TEST_F(ReadTickerTest, WithoutSocketsItDoesNothingAndBeginsAgain) {
  ticker->remove(watch);
  io.restart();
  const auto begin = std::chrono::steady_clock::now();
  io.run();  // ends, as there is nothing left to be waited for
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  ticker->add(watch);
  watch->arm();
  send();
  run_for(kSomeTicks);
  EXPECT_EQ(num_calls, 1);
}

TEST_F(ReadTickerTest, ACallMayRemoveAndAdd) {
  std::shared_ptr<ReadTicker::Watch> other;
  other = std::make_shared<ReadTicker::Watch>(end(), [&] {
    ++num_calls;
    ticker->remove(other);
    ticker->add(other);
  });
  ticker->add(other);
  other->arm();
  ::shutdown(end(), SHUT_RD);
  run_for(kSomeTicks);
  EXPECT_EQ(num_calls, 1);
  ticker->remove(other);
}

}  // namespace
}  // namespace transept
