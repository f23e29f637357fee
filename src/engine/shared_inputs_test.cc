// Proves that inputs share by their digests, and are forgotten and unpinned when their last user goes, on whatever
// thread that is.
#include "engine/shared_inputs.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

using Ids = std::vector<int32_t>;

class SharedInputsTest : public ::testing::Test {
 protected:
  SharedInputsTest() : scheduler_({}, {.num_device_blocks = 8}, clock_), inputs_(scheduler_, true) {}

  FakeClock clock_;
  Scheduler scheduler_;
  SharedInputs inputs_;
};

TEST_F(SharedInputsTest, EqualInputsHaveOneDigestWhileSomebodyUsesThem) {
  const auto first = inputs_.attach(GroupId(1), Ids{1, 2, 3});
  const auto second = inputs_.attach(GroupId(2), Ids{1, 2, 3});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first, second);
  EXPECT_NE(inputs_.attach(GroupId(3), Ids{1, 2, 4}), first);
  EXPECT_NE(inputs_.attach(GroupId(4), Ids{1, 2}), first);
  EXPECT_EQ(inputs_.attach(GroupId(5), Ids{}), std::nullopt);
  EXPECT_EQ(inputs_.num_inputs(), 3u);
  inputs_.detach(GroupId(1));
  inputs_.detach(GroupId(1));
  inputs_.detach(GroupId(5));
  EXPECT_EQ(inputs_.num_inputs(), 3u);
  for (uint64_t id = 2; id <= 4; ++id) inputs_.detach(GroupId(id));
  EXPECT_EQ(inputs_.num_inputs(), 0u);
}

TEST_F(SharedInputsTest, MediaAreEqualByWhatTheEncoderSees) {
  const auto features = [](std::vector<int64_t> shape, float last) {
    auto media = std::make_shared<EncoderFeatures>();
    media->shape = std::move(shape);
    media->values = {1, 2, 3, last};
    media->num_positions = 2;
    return EncoderContent({}, media);
  };
  const auto first = inputs_.attach(GroupId(1), features({2, 2}, 4));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(inputs_.attach(GroupId(2), features({2, 2}, 4)), first);
  EXPECT_NE(inputs_.attach(GroupId(3), features({2, 2}, 5)), first);
  EXPECT_NE(inputs_.attach(GroupId(4), features({4}, 4)), first) << "the same values in another shape";
  EXPECT_EQ(inputs_.num_inputs(), 3u);
}

TEST_F(SharedInputsTest, TheSwitchTurnsItOffForAllButHandles) {
  SharedInputs off(scheduler_, false);
  EXPECT_EQ(off.attach(GroupId(1), Ids{1, 2}), std::nullopt);
  const EncodedInput a = off.hold(Ids{1, 2}, std::nullopt), b = off.hold(Ids{1, 2}, std::nullopt);
  const ContentDigest of_a = off.attach(GroupId(2), a);
  EXPECT_EQ(off.attach(GroupId(3), a), of_a);
  EXPECT_NE(off.attach(GroupId(4), b), of_a);
}

// It is made on the caller's thread: nothing is hashed or compared where it is there.
TEST_F(SharedInputsTest, TheDigestThatComesWithTheContentCounts) {
  EncoderContent told(Ids{1, 2}), told_too(Ids{3}), untold(Ids{1, 2});
  told.digest = told_too.digest = testing::digest_of(7);
  const auto first = inputs_.attach(GroupId(1), told);
  EXPECT_EQ(first, told.digest);
  EXPECT_EQ(inputs_.attach(GroupId(2), told_too), first);
  EXPECT_EQ(inputs_.attach(GroupId(3), untold), content_digest(untold));
  EXPECT_EQ(inputs_.num_inputs(), 2u);
}

TEST_F(SharedInputsTest, AHandleIsTheInputAndCountsItsCopies) {
  EncodedInput handle = inputs_.hold(Ids{4, 5}, "a text");
  EXPECT_EQ(handle.content().token_ids, (Ids{4, 5}));
  EXPECT_EQ(handle.text(), "a text");
  EncodedInput copy = handle;
  EncodedInput moved = std::move(handle);
  EXPECT_FALSE(handle.has_value());  // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_TRUE(inputs_.owns(copy) && inputs_.owns(moved));
  EXPECT_FALSE(inputs_.owns(EncodedInput()));
  EXPECT_FALSE(SharedInputs(scheduler_, true).owns(copy));
  EXPECT_EQ(inputs_.attach(GroupId(1), Ids{4, 5}), inputs_.attach(GroupId(2), copy));
  inputs_.detach(GroupId(1));
  inputs_.detach(GroupId(2));
  moved = EncodedInput();
  inputs_.collect_dropped();
  EXPECT_EQ(inputs_.num_inputs(), 1u);
  copy = inputs_.hold(Ids{4, 5}, std::nullopt);  // another handle of the same input takes over
  inputs_.collect_dropped();
  EXPECT_EQ(inputs_.num_inputs(), 1u);
  EXPECT_EQ(copy.text(), std::nullopt);
  copy = EncodedInput();
  EXPECT_EQ(inputs_.num_inputs(), 1u);
  inputs_.collect_dropped();
  EXPECT_EQ(inputs_.num_inputs(), 0u);
}

TEST_F(SharedInputsTest, CountsWhatIsEncodedAgain) {
  inputs_.attach(GroupId(1), Ids{1});
  EXPECT_FALSE(inputs_.count_encode(GroupId(1)));
  EXPECT_TRUE(inputs_.count_encode(GroupId(1)));
  inputs_.attach(GroupId(2), Ids{1});
  inputs_.detach(GroupId(1));
  EXPECT_TRUE(inputs_.count_encode(GroupId(2)));
  inputs_.detach(GroupId(2));
  inputs_.attach(GroupId(3), Ids{1});
  EXPECT_FALSE(inputs_.count_encode(GroupId(3)));
  EXPECT_FALSE(inputs_.count_encode(GroupId(9)));
}

// Copies are made and dropped by many threads while the engine's collects, and after it is gone.
TEST_F(SharedInputsTest, HandlesAreDroppedAnywhere) {
  std::vector<EncodedInput> left;
  {
    SharedInputs inputs(scheduler_, true);
    std::vector<std::thread> threads;
    std::vector<EncodedInput> handles;
    handles.reserve(8);
    threads.reserve(8);
    for (int32_t i = 0; i < 8; ++i) handles.push_back(inputs.hold(Ids{i % 3}, std::nullopt));
    left = {handles[0], handles[1]};
    for (EncodedInput& handle : handles) {
      threads.emplace_back([mine = std::move(handle)] {
        for (int i = 0; i < 1000; ++i) {
          const EncodedInput copy = mine;  // NOLINT(performance-unnecessary-copy-initialization): copies are counted
          EXPECT_EQ(copy.content().token_ids.size(), 1u);
        }
      });
    }
    handles.clear();
    for (int i = 0; i < 100; ++i) inputs.collect_dropped();
    for (std::thread& thread : threads) thread.join();
    threads.clear();  // and with them the last copies
    inputs.collect_dropped();
    EXPECT_EQ(inputs.num_inputs(), 2u);
  }
  EXPECT_EQ(left[1].content().token_ids, Ids{1});
}

}  // namespace
}  // namespace transept
