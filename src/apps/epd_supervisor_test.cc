// Fleets of shell scripts: what they say is passed on, who dies is started again, and all end in order.
#include "apps/epd_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>

#include "apps/child_process_testing.h"
#include "apps/exit_codes.h"

namespace transept {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// In the background: a shell says of a command that a signal ended, but not of those.
constexpr std::string_view kWait = "while :; do sleep 1000 & wait; done";

// Says "up", and ends with `code` when it is asked to.
std::string server(int code = 0) {
  return str_cat("trap 'echo got >&2; sleep 0.05; echo gone >&2; exit ", code, "' TERM; echo up >&2; ", kWait);
}

SupervisedChild child(const std::string& name, const std::string& script) {
  const InstanceRole role = name[0] == 'e' ? InstanceRole::kEncode : InstanceRole::kDecode;
  return {.name = name, .role = role, .command = testing::shell(script)};
}

class EpdSupervisorTest : public ::testing::Test {
 protected:
  ~EpdSupervisorTest() override {
    EXPECT_FALSE(testing::has_children());
    EXPECT_EQ(testing::num_descriptors(), num_descriptors_);
  }

  // Also keeps what the supervisor logs.
  StatusOr<int> run(std::vector<SupervisedChild> children) { return run(std::move(children), clock_); }
  StatusOr<int> run(std::vector<SupervisedChild> children, const Clock& clock) {
    options_.num_interrupts = [this] { return num_interrupts_; };
    options_.ready_line = [this]() -> std::optional<std::string> {
      return is_ready_ ? std::optional<std::string>("all is ready") : std::nullopt;
    };
    options_.on_started = [this](const SupervisedChild& started, pid_t pid) { pids_[started.name].push_back(pid); };
    options_.write_line = [this](std::string_view line) {
      lines_.emplace_back(line);
      if (on_line_) on_line_(lines_.back());
    };
    ::testing::internal::CaptureStderr();
    EpdSupervisor supervisor(std::move(children), options_, clock);
    StatusOr<int> code = supervisor.run();
    log_ = ::testing::internal::GetCapturedStderr();
    return code;
  }
  std::ptrdiff_t count(std::string_view line) const { return std::ranges::count(lines_, line); }

  const std::ptrdiff_t num_descriptors_ = testing::num_descriptors();
  SteadyClock clock_;
  EpdSupervisor::Options options_ = {.restarts = {.first_delay = milliseconds(1), .max_delay = milliseconds(5)},
                                     .end_timeout = std::chrono::minutes(1)};
  std::function<void(const std::string&)> on_line_;
  int num_interrupts_ = 0;
  bool is_ready_ = false;
  std::vector<std::string> lines_;
  std::map<std::string, std::vector<pid_t>> pids_;
  std::string log_;
};

TEST_F(EpdSupervisorTest, DecodeInstancesEndBeforeEncodeInstances) {
  on_line_ = [this](const std::string&) {
    if (count("e0 | up") == 1 && count("p0 | up") == 1 && count("p1 | up") == 1) num_interrupts_ = 1;
  };
  EXPECT_EQ(run({child("e0", server()), child("p0", server()), child("p1", server())}).value(), kExitOk);
  ASSERT_EQ(lines_.size(), 9u);
  const auto part = [&](int begin, int end) { return std::vector(lines_.begin() + begin, lines_.begin() + end); };
  EXPECT_THAT(part(0, 3), UnorderedElementsAre("e0 | up", "p0 | up", "p1 | up"));
  EXPECT_THAT(part(3, 7), UnorderedElementsAre("p0 | got", "p1 | got", "p0 | gone", "p1 | gone"));
  EXPECT_THAT(part(7, 9), ElementsAre("e0 | got", "e0 | gone"));
  EXPECT_THAT(log_, HasSubstr("shutting down"));
}

TEST_F(EpdSupervisorTest, WhoIsKilledIsStartedAgain) {
  on_line_ = [this](const std::string&) {
    if (count("e0 | up") == 1 && count("p0 | up") == 1) ::kill(pids_["e0"][0], SIGKILL);
    if (count("e0 | up") == 2) num_interrupts_ = 1;
  };
  EXPECT_EQ(run({child("e0", server()), child("p0", server())}).value(), kExitOk);
  ASSERT_EQ(pids_["e0"].size(), 2u);
  EXPECT_NE(pids_["e0"][0], pids_["e0"][1]);
  EXPECT_EQ(pids_["p0"].size(), 1u);
  EXPECT_THAT(log_, HasSubstr("warning: e0 was ended by signal 9 (Killed); it is started again in 0.001 s"));
}

TEST_F(EpdSupervisorTest, AlsoWhoEndsWellByItselfIsStartedAgain) {
  on_line_ = [this](const std::string&) { num_interrupts_ = count("p0 | hello") == 3 ? 1 : 0; };
  EXPECT_TRUE(run({child("e0", server()), child("p0", "echo hello >&2; exit 0")}).ok());
  EXPECT_EQ(pids_["p0"].size(), 3u);
}

TEST_F(EpdSupervisorTest, WhoDiesTooOftenIsGivenUp) {
  const Status status = run({child("e0", server()), child("p0", "exit 3")}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(error_message(status), "p0 ended with code 3; it was started again 5 times within 60 s, and is given up");
  EXPECT_EQ(pids_["p0"].size(), 6u);
  EXPECT_EQ(pids_["e0"].size(), 1u);
}

TEST_F(EpdSupervisorTest, WrongFlagsAreNotTriedAgain) {
  EXPECT_EQ(run({child("e0", server()), child("p0", "echo 'transept serve: --x' >&2; exit 2")}).value(), kExitUsage);
  EXPECT_EQ(pids_["p0"].size(), 1u);
  EXPECT_EQ(count("p0 | transept serve: --x"), 1) << "what it said last";
  EXPECT_THAT(log_, HasSubstr("error: p0 ended with code 2 before all instances were ready"));
}

TEST_F(EpdSupervisorTest, TheSameCodeOnceAllWereReadyIsADeath) {
  is_ready_ = true;
  on_line_ = [this](const std::string&) { num_interrupts_ = count("p0 | up") == 2 ? 1 : 0; };
  EXPECT_TRUE(run({child("e0", server()), child("p0", "echo up >&2; sleep 0.1; exit 2")}).ok());
  EXPECT_EQ(pids_["p0"].size(), 2u);
  EXPECT_EQ(log_.find("all is ready"), log_.rfind("all is ready")) << log_;
  EXPECT_THAT(log_, HasSubstr("all is ready"));
}

TEST_F(EpdSupervisorTest, WhoEndsBadlyWhenAskedToMakesTheExitCode) {
  for (const char* name : {"e0", "p0"}) {
    num_interrupts_ = 0;
    lines_.clear();
    on_line_ = [this](const std::string&) { num_interrupts_ = count("e0 | up") + count("p0 | up") == 2 ? 1 : 0; };
    const auto code = run({child("e0", server(*name == 'e' ? 7 : 0)), child("p0", server(*name == 'p' ? 7 : 0))});
    EXPECT_EQ(code.value(), kExitSomeFailed) << name;
    EXPECT_THAT(log_, HasSubstr(str_cat("warning: ", name, " ended with code 7")));
  }
}

TEST_F(EpdSupervisorTest, WhoDoesNotEndIsKilled) {
  FakeClock clock;
  on_line_ = [&](const std::string& line) {
    if (count("e0 | up") + count("p0 | up") == 2) num_interrupts_ = 1;
    if (line == "p0 | got") clock.advance(options_.end_timeout);
  };
  const std::string deaf = str_cat("trap 'echo got >&2' TERM; echo up >&2; ", kWait);
  EXPECT_EQ(run({child("e0", server()), child("p0", deaf)}, clock).value(), kExitSomeFailed);
  EXPECT_THAT(log_, AllOf(HasSubstr("p0 is killed: it did not end within 60 s"),
                          HasSubstr("p0 was ended by signal 9 (Killed)")));
  EXPECT_EQ(count("p0 | got"), 1);
  EXPECT_EQ(count("e0 | got"), 1) << "it is asked all the same";
}

TEST_F(EpdSupervisorTest, ASecondInterruptKillsAll) {
  on_line_ = [this](const std::string& line) {
    if (count("e0 | up") + count("p0 | up") == 2) num_interrupts_ = 1;
    if (line == "p0 | got") num_interrupts_ = 2;
  };
  const std::string deaf = str_cat("trap 'echo got >&2' TERM; echo up >&2; ", kWait);
  EXPECT_EQ(run({child("e0", deaf), child("p0", deaf)}).value(), kExitSomeFailed);
  EXPECT_THAT(log_, AllOf(HasSubstr("p0 is killed: a second signal came"), HasSubstr("e0 is killed: a second")));
}

TEST_F(EpdSupervisorTest, WhatChildrenSayIsPassedOnWithTheirNames) {
  on_line_ = [this](const std::string& line) { num_interrupts_ = line == "e0 | up" ? 1 : num_interrupts_; };
  const std::string long_line = "head -c 20000 /dev/zero | tr '\\0' x >&2; echo >&2; ";
  EXPECT_TRUE(
      run({child("e0", str_cat("printf '{\"a\": 1}\\n\\n' >&2; ", long_line, server())), child("p0", server())}).ok());
  EXPECT_EQ(count("{\"a\": 1}"), 1);
  EXPECT_EQ(count("e0 | "), 1);
  EXPECT_EQ(count("e0 | " + std::string(ChildProcess::kMaxLineBytes, 'x')), 1);
  EXPECT_EQ(count("e0 | " + std::string(20000 - ChildProcess::kMaxLineBytes, 'x')), 1);
}

TEST_F(EpdSupervisorTest, NeitherWhoWritesAllTheTimeNorHalfALineHoldsOthersUp) {
  on_line_ = [this](const std::string& line) {
    if (line == "p0 | up") num_interrupts_ = 1;
    if (lines_.size() > 10000) lines_.clear();
  };
  const auto code =
      run({child("e0", "exec yes >&2"), child("e1", "exec tr '\\0' x < /dev/zero >&2"),
           child("e2", str_cat("printf half >&2; ", kWait)), child("p0", str_cat("sleep 0.1; ", server()))});
  EXPECT_EQ(code.value(), kExitSomeFailed) << "SIGTERM ended three of them";
  EXPECT_EQ(pids_["e0"].size() + pids_["e1"].size() + pids_["e2"].size() + pids_["p0"].size(), 4u);
}

TEST_F(EpdSupervisorTest, AProgramThatCannotRunEndsAll) {
  SupervisedChild missing = child("p0", "");
  missing.command.program = "/no/such";
  const Status status = run({child("e0", server()), missing}).status();
  EXPECT_EQ(error_message(status), "p0: /no/such: cannot be started: No such file or directory");
  EXPECT_EQ(pids_["p0"].size(), 0u);
}

TEST_F(EpdSupervisorTest, AnInterruptWhileOneWaitsToBeStartedAgainEndsTheOthers) {
  options_.restarts.first_delay = options_.restarts.max_delay = std::chrono::hours(1);
  int num_lines = 0;  // since
  on_line_ = [this, &num_lines](const std::string&) {
    const bool is_gone = ::kill(pids_["p0"][0], 0) != 0;
    if (is_gone && ++num_lines == 10) num_interrupts_ = 1;
  };
  const std::string ticking = "trap 'exit 0' TERM; while :; do echo tick >&2; sleep 0.01 & wait; done";
  EXPECT_EQ(run({child("e0", ticking), child("p0", "exit 1")}).value(), kExitOk);
  EXPECT_EQ(pids_["p0"].size(), 1u);
  EXPECT_THAT(log_, AllOf(HasSubstr("p0 ended with code 1; it is started again in 3600 s"), Not(HasSubstr("killed"))));
}

}  // namespace
}  // namespace transept
