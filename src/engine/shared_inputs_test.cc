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

// One item of ids that is crossed; none for no ids.
std::vector<EncoderItem> items_of(Ids ids) {
  EncoderDecoderInputs inputs;
  inputs.set_encoder_ids(std::move(ids));
  return inputs.items;
}

// The digest by which a group shares its only item; nullopt: it shares with none.
std::optional<ContentDigest> attach(SharedInputs& inputs, uint64_t group, std::vector<EncoderItem> items) {
  if (!inputs.attach(GroupId(group), items)) return std::nullopt;
  return items.at(0).digest;
}

TEST_F(SharedInputsTest, EqualInputsHaveOneDigestWhileSomebodyUsesThem) {
  const auto first = attach(inputs_, 1, items_of({1, 2, 3}));
  const auto second = attach(inputs_, 2, items_of({1, 2, 3}));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first, second);
  EXPECT_NE(attach(inputs_, 3, items_of({1, 2, 4})), first);
  EXPECT_NE(attach(inputs_, 4, items_of({1, 2})), first);
  EXPECT_EQ(attach(inputs_, 5, items_of({})), std::nullopt);
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
    return std::vector<EncoderItem>(1, EncoderItem({}, media));
  };
  const auto first = attach(inputs_, 1, features({2, 2}, 4));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(attach(inputs_, 2, features({2, 2}, 4)), first);
  EXPECT_NE(attach(inputs_, 3, features({2, 2}, 5)), first);
  EXPECT_NE(attach(inputs_, 4, features({4}, 4)), first) << "the same values in another shape";
  EXPECT_EQ(inputs_.num_inputs(), 3u);
}

// Of several items that are crossed the table is one more thing that is shared.
TEST_F(SharedInputsTest, SeveralItemsAreSharedEachAndTogether) {
  std::vector<EncoderItem> items = {EncoderItem(Ids{1}), EncoderItem(Ids{2})};
  EXPECT_TRUE(inputs_.attach(GroupId(1), items));
  EXPECT_EQ(inputs_.num_inputs(), 3u);
  EXPECT_EQ(attach(inputs_, 2, items_of({2})), items[1].digest);
  EXPECT_EQ(inputs_.num_inputs(), 3u);
  inputs_.detach(GroupId(1));
  EXPECT_EQ(inputs_.num_inputs(), 1u);
  items[0].consumers = Consumers::kSplice;
  EXPECT_TRUE(inputs_.attach(GroupId(3), items));
  EXPECT_EQ(inputs_.num_inputs(), 2u) << "the cross table of one item has its digest";
}

TEST_F(SharedInputsTest, TheSwitchTurnsItOffForAllButHandles) {
  SharedInputs off(scheduler_, false);
  EXPECT_EQ(attach(off, 1, items_of({1, 2})), std::nullopt);
  const EncodedInput a = off.hold(items_of({1, 2}), std::nullopt), b = off.hold(items_of({1, 2}), std::nullopt);
  std::vector<EncoderItem> of_a, also_of_a, of_b;
  off.attach(GroupId(2), a, of_a);
  off.attach(GroupId(3), a, also_of_a);
  off.attach(GroupId(4), b, of_b);
  EXPECT_EQ(of_a[0].digest, also_of_a[0].digest);
  EXPECT_NE(of_a[0].digest, of_b[0].digest);
  EXPECT_EQ(of_a[0].token_ids, (Ids{1, 2}));
}

// It is made on the caller's thread: nothing is hashed or compared where it is there.
TEST_F(SharedInputsTest, TheDigestThatComesWithTheItemCounts) {
  std::vector<EncoderItem> told = items_of({1, 2}), told_too = items_of({3}), untold = items_of({1, 2});
  told[0].digest = told_too[0].digest = testing::digest_of(7);
  EXPECT_EQ(attach(inputs_, 1, told), told[0].digest);
  EXPECT_EQ(attach(inputs_, 2, told_too), told[0].digest);
  EXPECT_EQ(attach(inputs_, 3, untold), item_digest(untold[0]));
  EXPECT_EQ(inputs_.num_inputs(), 2u);
}

TEST_F(SharedInputsTest, AHandleIsTheInputAndCountsItsCopies) {
  EncodedInput handle = inputs_.hold(items_of({4, 5}), "a text");
  EXPECT_EQ(handle.items()[0].token_ids, (Ids{4, 5}));
  EXPECT_EQ(handle.text(), "a text");
  EncodedInput copy = handle;
  EncodedInput moved = std::move(handle);
  EXPECT_FALSE(handle.has_value());  // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_TRUE(inputs_.owns(copy) && inputs_.owns(moved));
  EXPECT_FALSE(inputs_.owns(EncodedInput()));
  EXPECT_FALSE(SharedInputs(scheduler_, true).owns(copy));
  std::vector<EncoderItem> items;
  inputs_.attach(GroupId(2), copy, items);
  EXPECT_EQ(attach(inputs_, 1, items_of({4, 5})), items[0].digest);
  inputs_.detach(GroupId(1));
  inputs_.detach(GroupId(2));
  moved = EncodedInput();
  inputs_.collect_dropped();
  EXPECT_EQ(inputs_.num_inputs(), 1u);
  copy = inputs_.hold(items_of({4, 5}), std::nullopt);  // another handle of the same input takes over
  inputs_.collect_dropped();
  EXPECT_EQ(inputs_.num_inputs(), 1u);
  EXPECT_EQ(copy.text(), std::nullopt);
  copy = EncodedInput();
  EXPECT_EQ(inputs_.num_inputs(), 1u);
  inputs_.collect_dropped();
  EXPECT_EQ(inputs_.num_inputs(), 0u);
}

// Where they stand in the prompt is the request's to say; what they are, the handle's.
TEST_F(SharedInputsTest, TheItemsOfAHandleStandWhereEachRequestHasThem) {
  std::vector<EncoderItem> items = {EncoderItem(Ids{1}), EncoderItem(Ids{1})};
  for (EncoderItem& item : items) item.consumers = Consumers::kSplice;
  const EncodedInput handle = inputs_.hold(items, std::nullopt);
  std::vector<EncoderItem> first(2), second(2);
  first[0].splice_offset = 3, first[1].splice_offset = 5, second[1].splice_offset = 9;
  inputs_.attach(GroupId(1), handle, first);
  inputs_.attach(GroupId(2), handle, second);
  EXPECT_EQ(first[0].splice_offset, 3);
  EXPECT_EQ(first[1].splice_offset, 5);
  EXPECT_EQ(second[0].splice_offset, 0);
  EXPECT_EQ(second[1].splice_offset, 9);
  EXPECT_EQ(first[1].token_ids, Ids{1});
  EXPECT_EQ(first[1].digest, second[0].digest);
  EXPECT_EQ(first[1].consumers, Consumers::kSplice);
  EXPECT_EQ(inputs_.num_inputs(), 1u) << "an item twice, and no cross table";
}

TEST_F(SharedInputsTest, CountsWhatIsEncodedAgain) {
  attach(inputs_, 1, items_of({1}));
  EXPECT_FALSE(inputs_.count_encode(GroupId(1), 0));
  EXPECT_TRUE(inputs_.count_encode(GroupId(1), 0));
  attach(inputs_, 2, items_of({1}));
  inputs_.detach(GroupId(1));
  EXPECT_TRUE(inputs_.count_encode(GroupId(2), 0));
  inputs_.detach(GroupId(2));
  attach(inputs_, 3, items_of({1}));
  EXPECT_FALSE(inputs_.count_encode(GroupId(3), 0));
  EXPECT_FALSE(inputs_.count_encode(GroupId(9), 0));
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
    for (int32_t i = 0; i < 8; ++i) handles.push_back(inputs.hold(items_of({i % 3}), std::nullopt));
    left = {handles[0], handles[1]};
    for (EncodedInput& handle : handles) {
      threads.emplace_back([mine = std::move(handle)] {
        for (int i = 0; i < 1000; ++i) {
          const EncodedInput copy = mine;  // NOLINT(performance-unnecessary-copy-initialization): copies are counted
          EXPECT_EQ(copy.items()[0].token_ids.size(), 1u);
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
  EXPECT_EQ(left[1].items()[0].token_ids, Ids{1});
}

}  // namespace
}  // namespace transept
