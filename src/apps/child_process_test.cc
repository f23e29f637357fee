// Children of the shell: how they end, what they say, what they inherit, and that nothing of them is left.
#include "apps/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "apps/child_process_testing.h"

namespace transept {
namespace {

using testing::comes;
using ::testing::ElementsAre;
using testing::has_children;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::num_descriptors;
using testing::shell;

class ChildProcessTest : public ::testing::Test {
 protected:
  ~ChildProcessTest() override {
    EXPECT_FALSE(has_children());
    EXPECT_EQ(num_descriptors(), num_descriptors_);
  }

 private:
  const std::ptrdiff_t num_descriptors_ = num_descriptors();
};

std::unique_ptr<ChildProcess> started(const ChildProcess::Command& command) {
  auto child = ChildProcess::start(command);
  EXPECT_TRUE(child.ok()) << child.status();
  return std::move(child).value();
}

ChildEnd end_of(ChildProcess& child) {
  EXPECT_TRUE(comes([&] { return child.poll().has_value(); }));
  return child.poll().value_or(ChildEnd{});
}

// Everything that it writes until it ends.
std::vector<std::string> lines_of(ChildProcess& child) {
  std::vector<std::string> all;
  const auto take = [&] {
    std::vector<std::string> lines = child.read_lines();
    all.insert(all.end(), lines.begin(), lines.end());
    return lines.empty();
  };
  EXPECT_TRUE(comes([&] { return take() && child.poll().has_value(); }));
  while (!take()) {
  }
  return all;
}

std::vector<std::string> lines_of(const std::string& script) { return lines_of(*started(shell(script))); }

TEST_F(ChildProcessTest, EndsAreToldApart) {
  EXPECT_EQ(end_of(*started(shell("exit 0"))), (ChildEnd{false, 0}));
  EXPECT_EQ(end_of(*started(shell("exit 2"))), (ChildEnd{false, 2}));
  EXPECT_EQ(end_of(*started(shell("kill -9 $$"))), (ChildEnd{true, 9}));
  EXPECT_EQ((ChildEnd{false, 2}.text()), "ended with code 2");
  EXPECT_EQ((ChildEnd{true, 9}.text()), "was ended by signal 9 (Killed)");
  EXPECT_TRUE((ChildEnd{false, 0}.is_ok()));
  EXPECT_FALSE((ChildEnd{false, 1}.is_ok()));
  EXPECT_FALSE((ChildEnd{true, 0}.is_ok()));
}

TEST_F(ChildProcessTest, ProgramsThatCannotRunAreErrors) {
  const Status missing = ChildProcess::start({.program = "/no/such", .arguments = {"such"}}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(error_message(missing), HasSubstr("/no/such: cannot be started: No such file"));
  const Status folder = ChildProcess::start({.program = "/", .arguments = {"such"}}).status();
  EXPECT_EQ(folder.code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(ChildProcessTest, GetsItsArgumentsAndItsEnvironment) {
  auto command = shell("echo \"$0|$1|$A\" >&2; env | grep -c ^HOME= >&2");
  command.arguments.insert(command.arguments.end(), {"zero", "a b\n$c"});
  command.environment.emplace_back("A=1 2");
  EXPECT_THAT(lines_of(*started(command)), ElementsAre("zero|a b", "$c|1 2", "0"));
}

TEST_F(ChildProcessTest, LinesComeWhole) {
  EXPECT_THAT(lines_of("printf 'a\\n\\nb' >&2; printf 'c\\nrest' >&2"), ElementsAre("a", "", "bc", "rest"));
  EXPECT_THAT(lines_of("exit 0"), IsEmpty());
}

TEST_F(ChildProcessTest, LongLinesComeInPieces) {
  constexpr size_t kPiece = ChildProcess::kMaxLineBytes;
  const auto lines = lines_of("head -c 32768 /dev/zero | tr '\\0' x >&2; echo >&2; head -c 100000 /dev/zero >&2");
  std::vector<size_t> sizes;
  sizes.reserve(lines.size());
  for (const std::string& line : lines) sizes.push_back(line.size());
  EXPECT_THAT(sizes, ElementsAre(kPiece, kPiece, kPiece, kPiece, kPiece, kPiece, kPiece, kPiece, 100000 - 6 * kPiece));
}

TEST_F(ChildProcessTest, TheEndOfALongLineIsNoLineOfItsOwn) {
  const auto child = started(shell("trap 'echo >&2; exit 0' USR1; head -c 16384 /dev/zero >&2; sleep 1000 & wait"));
  EXPECT_TRUE(comes([&] {
    int num_bytes = 0;
    return ::ioctl(child->descriptor(), FIONREAD, &num_bytes) == 0 && num_bytes == 16384;
  }));
  EXPECT_THAT(child->read_lines(), IsEmpty());
  ::kill(child->pid(), SIGUSR1);  // the shell alone: head may still run
  EXPECT_THAT(lines_of(*child), ElementsAre(std::string(16384, '\0')));
}

TEST_F(ChildProcessTest, ReadingNeitherWaitsNorTakesForEver) {
  const auto quiet = started(shell("printf half >&2; exec sleep 1000"));
  EXPECT_THAT(quiet->read_lines(), IsEmpty());
  const auto loud = started(shell("exec yes 12345678901234567890 >&2"));
  size_t num_bytes = 0;
  EXPECT_TRUE(comes([&] {
    size_t bytes = 0;
    for (const std::string& line : loud->read_lines()) bytes += line.size();
    EXPECT_LE(bytes, size_t{70} << 10);
    return (num_bytes += bytes) > size_t{1} << 20;
  }));
  EXPECT_EQ(quiet->poll(), std::nullopt);
  EXPECT_EQ(loud->poll(), std::nullopt);
}

TEST_F(ChildProcessTest, AnOutputThatIsClosedEarlyIsNoEnd) {
  const auto child = started(shell("exec 2>&-; exec sleep 1000"));
  EXPECT_TRUE(comes([&] { return child->read_lines().empty() && child->descriptor() < 0; }));
  EXPECT_EQ(child->poll(), std::nullopt);
}

TEST_F(ChildProcessTest, SignalsReachTheWholeGroup) {
  const auto child =
      started(shell("trap 'echo outer >&2' TERM\n"
                    "sh -c 'trap \"echo inner >&2; exit 0\" TERM; echo up >&2; "
                    "sleep 1000 & wait'\n"
                    "exit 5"));
  std::vector<std::string> lines;
  EXPECT_TRUE(comes([&] { return !(lines = child->read_lines()).empty(); }));
  EXPECT_THAT(lines, ElementsAre("up"));
  child->send_signal(SIGTERM);
  EXPECT_THAT(lines_of(*child), ElementsAre("inner", "outer"));
  EXPECT_EQ(end_of(*child), (ChildEnd{false, 5}));
  child->send_signal(SIGTERM);  // no-op
}

// Whether a process runs; zombies do not.
bool runs(pid_t pid) {
  std::string stat;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), stat);
  return !stat.empty() && stat.find(") Z ") == std::string::npos && stat.find(") X ") == std::string::npos;
}

TEST_F(ChildProcessTest, WhatItLeavesBehindEndsWithIt) {
  const auto child = started(shell("sleep 1000 & echo $! >&2; exit 3"));
  EXPECT_EQ(end_of(*child), (ChildEnd{false, 3}));
  const std::vector<std::string> lines = child->read_lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(comes([&] { return !runs(std::stoi(lines[0])); }));
}

TEST_F(ChildProcessTest, EndsWithItsOwner) {
  auto child = started(shell("trap '' TERM INT HUP; echo up >&2; while :; do sleep 1000 & wait; done"));
  EXPECT_TRUE(comes([&] { return !child->read_lines().empty(); }));
  const pid_t pid = child->pid();
  EXPECT_TRUE(runs(pid));
  child.reset();
  EXPECT_FALSE(runs(pid));
}

TEST_F(ChildProcessTest, IsSentSigtermWhenItsThreadEnds) {
  std::unique_ptr<ChildProcess> child;
  std::thread([&] { child = started(shell("exec sleep 1000")); }).join();
  EXPECT_EQ(end_of(*child), (ChildEnd{true, SIGTERM}));
}

TEST_F(ChildProcessTest, HasNoDescriptorOfOurs) {
  const int ours = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  const int high = ::fcntl(ours, F_DUPFD, 200);
  EXPECT_GE(high, 200);
  EXPECT_THAT(lines_of("exec ls /proc/self/fd >&2"), ElementsAre("0", "1", "2", "3"));  // 3: the folder that is listed
  ::close(high);
  ::close(ours);
}

TEST_F(ChildProcessTest, HasTheOneDescriptorThatIsHandedOn) {
  for (const int number : {-1, 5}) {  // the lowest that is free, which others become there; and one behind those
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const int given = number < 0 ? ends[1] : ::fcntl(ends[1], F_DUPFD_CLOEXEC, number);
    ChildProcess::Command command = shell("echo there >&4; ls /proc/self/fd >&2");
    command.inherited = given;
    const auto child = started(command);
    EXPECT_THAT(lines_of(*child), ElementsAre("0", "1", "2", "3", "4")) << "3 is what lists them";
    char text[16] = {};
    EXPECT_EQ(::read(ends[0], text, sizeof(text)), 6);
    EXPECT_STREQ(text, "there\n");
    for (const int fd : {ends[0], ends[1]}) ::close(fd);
    if (given != ends[1]) ::close(given);
  }
}

TEST_F(ChildProcessTest, HasSignalsAsAShellGivesThem) {
  // Bits 12 (SIGPIPE) and 14 (SIGTERM) of what is blocked and ignored.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  sigset_t term, old;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &old);
  const auto lines = lines_of("exec grep -E '^Sig(Blk|Ign)' /proc/self/status >&2");
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  std::signal(SIGPIPE, before);
  EXPECT_THAT(lines, ElementsAre("SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"));
}

TEST_F(ChildProcessTest, IsAGroupOfItsOwn) {
  const auto child = started(shell("exec sleep 1000"));
  EXPECT_EQ(::getpgid(child->pid()), child->pid());
  EXPECT_NE(::getpgrp(), child->pid());
}

}  // namespace
}  // namespace transept
