#include "comm/sub_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "base/sanitized_testing.h"
#include "comm/ranks_testing.h"

namespace transept {
namespace {

using testing::gloo_is_here;
using ::testing::HasSubstr;
using testing::kPatient;
using testing::make_group;
using testing::run_gloo_ranks;
using testing::run_ranks;

// What rank `rank` of the whole gives in call `call`, at place `i`.
std::byte content(int rank, int call, size_t i) {
  return static_cast<std::byte>((static_cast<size_t>(rank) * 71 + static_cast<size_t>(call) * 13 + i * 7) % 251);
}

// Ranks of two groups of `size` make calls of their own; those of the second make fewer, and none waits for the other
// group.
void exchange_in_groups(Communicator& whole, int size, std::atomic<int>& num_right) {
  const int first = whole.rank() / size * size;
  SubCommunicator ranks(whole, first, size);
  EXPECT_EQ(ranks.rank(), whole.rank() - first);
  EXPECT_EQ(ranks.size(), size);
  std::mt19937 draw(static_cast<unsigned>(first));  // the same sizes on all ranks of a group
  const int num_calls = first == 0 ? 60 : 25;
  StatusOr<Communicator::Parts> last;
  size_t last_bytes = 0;
  for (int call = 0; call < num_calls; ++call) {
    const size_t bytes = draw() % (ranks.max_bytes() + 1);
    const std::span<std::byte> out = ranks.outbox(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = content(whole.rank(), call, i);
    // The next part is written, and the last ones are what they were.
    for (int rank = 0; call > 0 && rank < size; ++rank) {
      const std::span<const std::byte> part = (*last)[static_cast<size_t>(rank)];
      ASSERT_EQ(part.size(), last_bytes);
      for (size_t i = 0; i < part.size(); ++i) ASSERT_EQ(part[i], content(first + rank, call - 1, i));
    }
    last = ranks.exchange(bytes);
    last_bytes = bytes;
    ASSERT_TRUE(last.ok()) << last.status();
    ASSERT_EQ(std::ssize(*last), size);
    std::vector<std::byte> data(3 * ranks.max_bytes() + 1, content(whole.rank(), call, 0));
    const int root = call % size;
    ASSERT_TRUE(ranks.broadcast(data, root).ok());
    ASSERT_EQ(data, std::vector(data.size(), content(first + root, call, 0)));
    ASSERT_TRUE(ranks.barrier().ok());
    ++num_right;
    const std::span<std::byte> again = ranks.outbox(bytes);  // parts have ended with the next call
    for (size_t i = 0; i < bytes; ++i) again[i] = content(whole.rank(), call, i);
    last = ranks.exchange(bytes);
    ASSERT_TRUE(last.ok()) << last.status();
  }
}

TEST(SubCommunicator, GroupsCallApart) {
  for (const int size : {1, 2, 4}) {
    const auto group = make_group(2 * size);
    std::atomic<int> num_right = 0;
    run_ranks(*group, kPatient, [&](Communicator& whole) { exchange_in_groups(whole, size, num_right); });
    EXPECT_EQ(num_right, 85 * size);
  }
}

TEST(SubCommunicator, GroupsCallApartOverGloo) {
  if (!gloo_is_here()) GTEST_SKIP() << "the shared library of Gloo is absent";
  std::atomic<int> num_right = 0;
  run_gloo_ranks(4, {std::chrono::seconds(60), 4096, 256},
                 [&](Communicator& whole) { exchange_in_groups(whole, 2, num_right); });
  EXPECT_EQ(num_right, 170);
}

TEST(SubCommunicator, AFailureIsThatOfAll) {
  const auto group = make_group(4);
  std::atomic<int> num_right = 0;
  run_ranks(*group, kPatient, [&](Communicator& whole) {
    SubCommunicator ranks(whole, whole.rank() / 2 * 2, 2);
    if (whole.rank() == 3) return ranks.fail(absl::UnavailableError("rank 3 (pid 7) was ended by signal 9"));
    const Status status = whole.rank() == 2 ? ranks.barrier() : whole.barrier();  // 3 is waited for in both groups
    EXPECT_THAT(error_message(status), HasSubstr("ended by signal 9"));
    EXPECT_TRUE(ranks.failure().has_value());
    EXPECT_EQ(ranks.exchange(8).status(), status);
    ++num_right;
  });
  EXPECT_EQ(num_right, 3);
}

}  // namespace
}  // namespace transept
