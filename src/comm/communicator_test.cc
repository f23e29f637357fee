// What every communicator does, by one suite; what only one does, in its own test.
#include "base/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "comm/ranks_testing.h"

namespace transept {
namespace {

using testing::gloo_is_here;
using ::testing::HasSubstr;
using testing::make_group;
using testing::run_gloo_ranks;
using testing::run_ranks;

enum class Kind { kSpinning, kSleeping, kGloo };

struct Limits {
  Duration rank_timeout = std::chrono::seconds(60);
  size_t outbox_bytes = 4096, mailbox_bytes = 256;
};

void run(Kind kind, int num_ranks, const Limits& limits, const std::function<void(Communicator&)>& work) {
  if (kind == Kind::kGloo) {
    return run_gloo_ranks(num_ranks, {limits.rank_timeout, limits.outbox_bytes, limits.mailbox_bytes}, work);
  }
  const auto group = make_group(num_ranks, limits.outbox_bytes, limits.mailbox_bytes);
  run_ranks(*group, {.rank_timeout = limits.rank_timeout, .spins = kind == Kind::kSpinning}, work);
}

const char* name_of(Kind kind) { return kind == Kind::kSpinning ? "Spin" : kind == Kind::kSleeping ? "Sleep" : "Gloo"; }

class Groups : public ::testing::TestWithParam<std::tuple<int, Kind>> {
 protected:
  void SetUp() override {
    if (kind_ == Kind::kGloo && !gloo_is_here()) GTEST_SKIP() << "the shared library of Gloo is absent";
  }
  void run(const std::function<void(Communicator&)>& work) const { transept::run(kind_, num_ranks_, {}, work); }

  const int num_ranks_ = std::get<0>(GetParam());
  const Kind kind_ = std::get<1>(GetParam());
};

// What rank `rank` gives in call `call`, at place `i`.
std::byte content(int rank, int call, size_t i) {
  return static_cast<std::byte>((static_cast<size_t>(rank) * 71 + static_cast<size_t>(call) * 13 + i * 7) % 251);
}

void fill(std::span<std::byte> bytes, int rank, int call) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = content(rank, call, i);
}

bool is_filled(std::span<const std::byte> bytes, int rank, int call) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != content(rank, call, i)) return false;
  }
  return true;
}

TEST_P(Groups, ExchangesGiveEachRanksPartToAll) {
  constexpr int num_calls = 400;
  std::atomic<int> num_right = 0;
  run([&](Communicator& ranks) {
    std::mt19937 draw(7);  // the same sizes on all ranks
    for (int call = 0; call < num_calls; ++call) {
      const size_t bytes = draw() % (ranks.max_bytes() + 1);
      fill(ranks.outbox(bytes), ranks.rank(), call);
      const StatusOr<Communicator::Parts> parts = ranks.exchange(bytes);
      ASSERT_TRUE(parts.ok()) << parts.status();
      ASSERT_EQ(std::ssize(*parts), num_ranks_);
      // The next part may be written while the last ones are read.
      fill(ranks.outbox(ranks.max_bytes()), ranks.rank(), -1);
      for (int rank = 0; rank < num_ranks_; ++rank) {
        const std::span<const std::byte> part = (*parts)[static_cast<size_t>(rank)];
        num_right += part.size() == bytes && is_filled(part, rank, call) ? 1 : 0;
      }
    }
  });
  EXPECT_EQ(num_right, num_ranks_ * num_ranks_ * num_calls);
}

TEST_P(Groups, BroadcastsOfAnySizeFromAnyRank) {
  std::atomic<int> num_right = 0;
  run([&](Communicator& ranks) {
    int call = 0;
    for (const size_t bytes : {size_t{0}, size_t{1}, ranks.max_bytes() - 1, ranks.max_bytes(), ranks.max_bytes() + 1,
                               5 * ranks.max_bytes() + 17}) {
      for (int root = 0; root < num_ranks_; ++root, ++call) {
        std::vector<std::byte> data(bytes);
        if (ranks.rank() == root) fill(data, root, call);
        const Status status = ranks.broadcast(data, root);
        ASSERT_TRUE(status.ok()) << status;
        num_right += is_filled(data, root, call) ? 1 : 0;
      }
    }
  });
  EXPECT_EQ(num_right, 6 * num_ranks_ * num_ranks_);
}

TEST_P(Groups, NoRankLeavesABarrierBeforeAllHaveComeToIt) {
  std::atomic<int> num_come = 0, num_early = 0;
  run([&](Communicator& ranks) {
    for (int round = 1; round <= 50; ++round) {
      ++num_come;
      ASSERT_TRUE(ranks.barrier().ok());
      num_early += num_come < round * num_ranks_ ? 1 : 0;
      ASSERT_TRUE(ranks.barrier().ok());
    }
  });
  EXPECT_EQ(num_early, 0);
}

TEST_P(Groups, MessagesComeWholeAndInOrder) {
  if (num_ranks_ == 1) return;  // a rank sends itself nothing
  const std::vector<size_t> sizes = {0, 1, 100, 239, 240, 241, 256, 1000, 5000};
  std::atomic<int> num_right = 0;
  // Mailboxes of 256 bytes, in a ring: each sends to the next, and takes from the one before; the first takes before it
  // sends, as rings of more than a mailbox would wait for each other otherwise.
  run([&](Communicator& ranks) {
    const int next = (ranks.rank() + 1) % num_ranks_, before = (ranks.rank() + num_ranks_ - 1) % num_ranks_;
    int message = 0;
    for (int round = 0; round < 5; ++round) {
      for (const size_t size : sizes) {
        std::vector<std::byte> sent(size), taken(size);
        fill(sent, ranks.rank(), message);
        const auto send = [&] { return ranks.send(next, sent); };
        const auto take = [&] { return ranks.recv(before, taken); };
        const bool takes_first = ranks.rank() == 0;
        ASSERT_EQ(takes_first ? take() : send(), ok_status());
        ASSERT_EQ(takes_first ? send() : take(), ok_status());
        num_right += is_filled(taken, before, message++) ? 1 : 0;
      }
    }
  });
  EXPECT_EQ(num_right, num_ranks_ * 5 * std::ssize(sizes));
}

// Two ranks that send each other as much as a mailbox holds, before they take anything, do not wait for each other.
TEST_P(Groups, SendersAreAheadByAMailbox) {
  std::atomic<int> num_right = 0;
  constexpr int kRounds = 20, kMessages = 2;
  const int num_pairs = num_ranks_ / 2;
  run([&](Communicator& ranks) {
    const int other = ranks.rank() ^ 1;
    if (other >= num_ranks_) return;
    std::vector<std::byte> data(ranks.mailbox_bytes() / kMessages - 32);
    for (int call = 0; call < kRounds * kMessages; call += kMessages) {
      for (int i = 0; i < kMessages; ++i) {
        fill(data, ranks.rank(), call + i);
        ASSERT_TRUE(ranks.send(other, data).ok());
      }
      for (int i = 0; i < kMessages; ++i) {
        ASSERT_TRUE(ranks.recv(other, data).ok());
        num_right += is_filled(data, other, call + i) ? 1 : 0;
      }
    }
  });
  EXPECT_EQ(num_right, 2 * num_pairs * kRounds * kMessages);
}

INSTANTIATE_TEST_SUITE_P(All, Groups,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 8),
                                            ::testing::Values(Kind::kSpinning, Kind::kSleeping, Kind::kGloo)),
                         [](const auto& tested) {
                           return str_cat(std::get<0>(tested.param), name_of(std::get<1>(tested.param)));
                         });

// ---- Ranks that are not as the others

// The errors that two ranks end with.
std::vector<Status> errors_of(Kind kind, const Limits& limits, const std::function<Status(Communicator&)>& work) {
  std::vector<Status> errors(2);
  run(kind, 2, limits, [&](Communicator& ranks) { errors[static_cast<size_t>(ranks.rank())] = work(ranks); });
  return errors;
}

class Kinds : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kGloo && !gloo_is_here()) GTEST_SKIP() << "the shared library of Gloo is absent";
  }
};

INSTANTIATE_TEST_SUITE_P(All, Kinds, ::testing::Values(Kind::kSpinning, Kind::kSleeping, Kind::kGloo),
                         [](const auto& tested) { return name_of(tested.param); });

TEST_P(Kinds, RanksThatHaveRunApartAreToldSo) {
  const std::function<Status(Communicator&)> works[] = {
      [](Communicator& ranks) { return ranks.exchange(ranks.rank() == 0 ? 64 : 128).status(); },
      [](Communicator& ranks) { return ranks.rank() == 0 ? ranks.barrier() : ranks.exchange(0).status(); },
      [](Communicator& ranks) {
        std::byte data[8] = {};
        return ranks.broadcast(data, ranks.rank());
      },
      [](Communicator& ranks) {
        ranks.begin_step(ranks.rank());
        return ranks.barrier();
      },
      [](Communicator& ranks) {
        std::byte data[8] = {};
        return ranks.rank() == 0 ? ranks.send(1, std::span(data, 4)) : ranks.recv(0, data);
      }};
  for (const auto& work : works) {
    const std::vector<Status> errors = errors_of(GetParam(), {}, [&](Communicator& ranks) {
      RETURN_IF_ERROR(ranks.barrier());
      Status status = work(ranks);
      // A rank that saw nothing wrong learns of it in its next call.
      return status.ok() ? ranks.exchange(8).status() : status;
    });
    for (const Status& error : errors) EXPECT_THAT(error_message(error), HasSubstr("ranks have run apart: ")) << error;
    EXPECT_EQ(errors[0], errors[1]) << "a group ends with one error";
  }
}

TEST_P(Kinds, TheErrorNamesBothCalls) {
  const std::vector<Status> errors = errors_of(GetParam(), {}, [](Communicator& ranks) {
    EXPECT_EQ(ranks.step(), 0);
    ranks.begin_step(7);
    EXPECT_EQ(ranks.step(), 7);
    for (int i = 0; i < 117; ++i) RETURN_IF_ERROR(ranks.barrier());
    return ranks.exchange(ranks.rank() == 0 ? 64 : 128).status();
  });
  EXPECT_THAT(error_message(errors[0]), HasSubstr("exchange 118 of step 7 with 64 bytes"));
  EXPECT_THAT(error_message(errors[0]), HasSubstr("exchange 118 of step 7 with 128 bytes"));
}

TEST_P(Kinds, ARankThatDoesNotAnswerEndsTheGroup) {
  const std::vector<Status> errors =
      errors_of(GetParam(), {.rank_timeout = std::chrono::milliseconds(50)}, [](Communicator& ranks) {
        ranks.begin_step(3);
        ranks.set_rank_timeout(std::chrono::seconds(60));  // threads start when they can
        RETURN_IF_ERROR(ranks.barrier());
        ranks.set_rank_timeout(std::chrono::milliseconds(50));
        if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
        return ranks.exchange(16).status();
      });
  EXPECT_EQ(errors[0].code(), absl::StatusCode::kUnavailable) << "what waits for it may be asked again";
  EXPECT_THAT(error_message(errors[0]), ::testing::StartsWith("rank 1 ("));
  EXPECT_THAT(error_message(errors[0]), HasSubstr(str_cat("pid ", ::getpid(), ") has not answered for 0.05 s")));
  EXPECT_THAT(error_message(errors[0]), HasSubstr("exchange 2 of step 3"));
  EXPECT_EQ(errors[1], errors[0]) << "it is told when it comes";
}

TEST_P(Kinds, FailWakesThoseThatWaitAndTheFirstErrorStays) {
  std::vector<Status> errors(3);
  std::atomic<int> num_waiting = 0;
  const auto begin = std::chrono::steady_clock::now();
  run(GetParam(), 3, {}, [&](Communicator& ranks) {
    Status& error = errors[static_cast<size_t>(ranks.rank())];
    std::byte data[4] = {};
    ++num_waiting;
    if (ranks.rank() == 0) error = ranks.barrier();
    if (ranks.rank() == 1) error = ranks.recv(0, data);
    if (ranks.rank() == 2) {
      while (num_waiting < 3) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ranks.fail(absl::UnavailableError("rank 1 (pid 77) ended: signal 9"));
      ranks.fail(invalid_argument("another"));
      error = ranks.barrier();
    }
    EXPECT_EQ(ranks.send(ranks.rank() == 0 ? 1 : 0, data), error) << "and stays";
  });
  for (const Status& error : errors) EXPECT_EQ(error, absl::UnavailableError("rank 1 (pid 77) ended: signal 9"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_P(Kinds, AwaitHasNoTimeLimitAndTakesNothing) {
  run(GetParam(), 2, {.rank_timeout = std::chrono::milliseconds(50)}, [](Communicator& ranks) {
    int32_t number = 7;
    if (ranks.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_TRUE(ranks.send(1, std::as_bytes(std::span(&number, 1))).ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return ranks.fail(absl::UnavailableError("gone"));
    }
    number = 0;
    EXPECT_TRUE(ranks.await(0).ok());
    EXPECT_TRUE(ranks.await(0).ok()) << "it is there still";
    EXPECT_TRUE(ranks.recv(0, std::as_writable_bytes(std::span(&number, 1))).ok());
    EXPECT_EQ(number, 7);
    EXPECT_EQ(error_message(ranks.await(0)), "gone") << "a failed group wakes it";
  });
}

TEST_P(Kinds, TheRankThatWaitsForAMessageHasWaited) {
  constexpr std::chrono::milliseconds kPause(200);
  constexpr double kMost = 0.1, kLeast = 0.15;  // seconds
  run(GetParam(), 2, {}, [&](Communicator& ranks) {
    int32_t number = 7;
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(&number, 1));
    if (ranks.rank() == 0) {
      for (int message = 0; message < 2; ++message) {
        std::this_thread::sleep_for(kPause);
        ASSERT_TRUE(ranks.send(1, bytes).ok());
      }
      ASSERT_TRUE(ranks.await(1).ok());
      ASSERT_TRUE(ranks.recv(1, bytes).ok());
      EXPECT_LT(ranks.times().waits[0], kMost) << "it had no message to wait for";
    } else {
      ASSERT_TRUE(ranks.recv(0, bytes).ok());
      const double waited = ranks.times().waits[1];
      EXPECT_GE(waited, kLeast);
      ASSERT_TRUE(ranks.await(0).ok());
      ASSERT_TRUE(ranks.recv(0, bytes).ok());
      EXPECT_LT(ranks.times().waits[1], waited + kMost) << "to wait for work is no waiting";
      ASSERT_TRUE(ranks.send(0, bytes).ok());
    }
    EXPECT_GE(ranks.times().waits[1], kLeast) << "as the other rank has heard, too";
  });
}

TEST_P(Kinds, ASleepingRankUsesNoProcessor) {
  double seconds_used = -1;
  run(GetParam(), 2, {}, [&](Communicator& ranks) {
    if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    rusage before = {}, after = {};
    getrusage(RUSAGE_THREAD, &before);
    ASSERT_TRUE(ranks.barrier().ok());
    getrusage(RUSAGE_THREAD, &after);
    const auto seconds_of = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    if (ranks.rank() == 0) seconds_used = seconds_of(after.ru_utime) - seconds_of(before.ru_utime);
  });
  EXPECT_GE(seconds_used, 0);
  EXPECT_LT(seconds_used, 0.1) << "of half a second of waiting";
}

}  // namespace
}  // namespace transept
