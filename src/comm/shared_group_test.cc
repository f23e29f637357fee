#include "comm/shared_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "comm/ranks_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using testing::kPatient;
using testing::make_group;

TEST(SharedGroup, RefusesNumbersOutOfRange) {
  const std::pair<SharedGroup::Options, const char*> rows[] = {
      {{.num_ranks = 0}, "a group of 0 ranks: 1 to 64"},
      {{.num_ranks = 65}, "a group of 65 ranks"},
      {{.num_ranks = 2, .outbox_bytes = 0}, "an outbox of 0 bytes"},
      {{.num_ranks = 2, .outbox_bytes = SharedGroup::kMaxOutboxBytes + 1}, "an outbox of 4294967297 bytes"},
      {{.num_ranks = 2, .mailbox_bytes = 0}, "a mailbox of 0 bytes"},
      {{.num_ranks = 2, .mailbox_bytes = SIZE_MAX}, "a mailbox of"}};
  for (const auto& [options, words] : rows) {
    EXPECT_THAT(error_message(SharedGroup::create(options).status()), HasSubstr(words));
  }
}

TEST(SharedGroup, LargeOutboxesCostNothingUntouched) {
  const auto group = make_group(8, SharedGroup::kMaxOutboxBytes, SharedGroup::kMaxMailboxBytes);
  struct stat file = {};
  ASSERT_EQ(::fstat(group->fd(), &file), 0);
  EXPECT_GT(file.st_size, off_t{8} * 2 << 32);
  EXPECT_LT(file.st_blocks * 512, 1 << 20);
}

TEST(SharedGroup, PartsDoNotOverlap) {
  const auto group = make_group(3, 5000, 100);
  std::vector<std::span<std::byte>> parts;
  for (int from = 0; from < 3; ++from) {
    parts.push_back(std::as_writable_bytes(std::span(&group->rank(from), 1)));
    for (const uint64_t call : {0, 1}) parts.push_back(group->slot(from, call));
    for (int to = 0; to < 3; ++to) {
      parts.push_back(std::as_writable_bytes(std::span(&group->mailbox(from, to), 1)));
      parts.push_back(group->mailbox_bytes(from, to));
    }
  }
  std::sort(parts.begin(), parts.end(), [](auto a, auto b) { return a.data() < b.data(); });
  for (size_t i = 1; i < parts.size(); ++i) EXPECT_GE(parts[i].data(), parts[i - 1].data() + parts[i - 1].size()) << i;
  EXPECT_EQ(group->slot(0, 2).data(), group->slot(0, 0).data());
}

// A copy of the group's memory, changed.
int changed(const SharedGroup& group, size_t offset, uint64_t value, int64_t size_change = 0) {
  struct stat file = {};
  CHECK(::fstat(group.fd(), &file) == 0);
  std::vector<char> bytes(static_cast<size_t>(file.st_size));
  CHECK(::pread(group.fd(), bytes.data(), bytes.size(), 0) == file.st_size);
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  bytes.resize(bytes.size() + static_cast<size_t>(size_change));
  const int fd = ::memfd_create("changed", MFD_CLOEXEC);
  CHECK(::write(fd, bytes.data(), bytes.size()) == std::ssize(bytes));
  return fd;
}

TEST(SharedGroup, AttachTakesOnlyWhatCreateMade) {
  const auto group = make_group(2);
  EXPECT_TRUE(SharedGroup::attach(::dup(group->fd())).ok());
  EXPECT_THAT(error_message(SharedGroup::attach(-1).status()), HasSubstr("memory shared by ranks: fstat"));
  EXPECT_THAT(error_message(SharedGroup::attach(::memfd_create("empty", MFD_CLOEXEC)).status()),
              HasSubstr("too short"));
  uint64_t first = 0;
  ASSERT_EQ(::pread(group->fd(), &first, sizeof(first), 0), 8);
  EXPECT_THAT(error_message(SharedGroup::attach(changed(*group, 0, first + 1)).status()), HasSubstr("another build"));
  EXPECT_THAT(error_message(SharedGroup::attach(changed(*group, 0, first, 4096)).status()), HasSubstr("its head says"));
  EXPECT_THAT(error_message(SharedGroup::attach(changed(*group, 0, first, -4096)).status()),
              HasSubstr("its head says"));
  // Every number of the head, at its worst.
  for (size_t offset = 8; offset < 48; offset += 8) {
    for (const uint64_t value : {uint64_t{0}, UINT64_MAX, uint64_t{1} << 63}) {
      EXPECT_FALSE(SharedGroup::attach(changed(*group, offset, value)).ok()) << offset << " " << value;
    }
  }
}

// Runs `work` as rank 1 in another process, which maps the memory anew. Returns its pid.
pid_t fork_rank(const SharedGroup& group, const std::function<bool(Communicator&)>& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  StatusOr<std::unique_ptr<SharedGroup>> mapped = SharedGroup::attach(::dup(group.fd()));
  if (!mapped.ok()) ::_exit(2);
  SharedCommunicator communicator(**mapped, 1, kPatient);
  ::_exit(work(communicator) ? 0 : 1);
}

TEST(SharedGroup, ProcessesExchange) {
  const auto group = make_group(2);
  const auto work = [](Communicator& ranks) {
    for (uint8_t call = 0; call < 100; ++call) {
      std::memset(ranks.outbox(1000).data(), ranks.rank() * 100 + call, 1000);
      const StatusOr<Communicator::Parts> parts = ranks.exchange(1000);
      if (!parts.ok()) return false;
      for (size_t rank = 0; rank < 2; ++rank) {
        for (const std::byte byte : (*parts)[rank]) {
          if (byte != static_cast<std::byte>(rank * 100 + call)) return false;
        }
      }
    }
    std::byte data[3] = {};
    return ranks.rank() == 0 ? ranks.send(1, data).ok() : ranks.recv(0, data).ok();
  };
  const pid_t child = fork_rank(*group, work);
  ASSERT_GT(child, 0);
  SharedCommunicator own(*group, 0, kPatient);
  EXPECT_TRUE(work(own));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(SharedGroup, AKilledProcessIsNamedAfterTheTimeout) {
  const auto group = make_group(2);
  const pid_t child = fork_rank(*group, [](Communicator& ranks) {
    while (ranks.barrier().ok()) {
    }
    return true;
  });
  ASSERT_GT(child, 0);
  SharedCommunicator own(*group, 0, {.rank_timeout = std::chrono::milliseconds(500), .spins = false});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(own.barrier().ok());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) status = own.barrier();  // it may have been in one
  EXPECT_THAT(error_message(status), HasSubstr(str_cat("rank 1 (pid ", child, ") has not answered for 0.5 s")));
}

}  // namespace
}  // namespace transept
