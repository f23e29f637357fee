#include "encoder_cache/encoder_cache_manager.h"

#include <gtest/gtest.h>

#include "base/content_digest_testing.h"

namespace transept {
namespace {

// A pool of `slots` blocks of one position each: vLLM's EncoderCacheManager(cache_size=slots).
class EncoderCacheManagerTest : public ::testing::Test {
 protected:
  void make(int32_t slots, int32_t per_block = 1, int32_t max_reserved = -1, double watermark = 0) {
    BlockSpaceManager::Options options;
    options.specs = {{TableOwner::kSequence}, {TableOwner::kItem, per_block}};
    options.num_device_blocks = slots;
    options.keep_unused_items = true;
    options.max_reserved_blocks = max_reserved < 0 ? slots : max_reserved;
    options.watermark = watermark;
    blocks_ = std::make_unique<BlockSpaceManager>(options);
    manager_ = std::make_unique<EncoderCacheManager>(*blocks_, 1);
  }
  void SetUp() override { make(10); }
  void TearDown() override { EXPECT_TRUE(blocks_->check_invariants().ok()) << blocks_->check_invariants(); }

  static EcUse use(const std::string& request, uint32_t input, uint64_t content, int32_t positions) {
    return {{request, input}, testing::digest_of(content), positions};
  }
  static EcMeta meta(const std::string& request, uint32_t input, uint64_t content, int32_t positions) {
    EcMeta meta;
    meta.key = {request, input, 0};
    meta.digest = testing::digest_of(content);
    meta.num_positions = positions;
    return meta;
  }
  // As vLLM's allocate(): there, an entry counts as cached at once.
  void allocate(const EcUse& use) {
    EXPECT_EQ(manager_->can_allocate(use.num_positions), AllocStatus::kOk);
    manager_->allocate(use);
    EXPECT_TRUE(manager_->mark_written(use.input));
  }
  bool is_cached(uint64_t content) const { return blocks_->find_written(testing::digest_of(content), 1) > 0; }

  std::unique_ptr<BlockSpaceManager> blocks_;
  std::unique_ptr<EncoderCacheManager> manager_;
};

// ---- tests/v1/core/test_encoder_cache_manager.py of vLLM, with its numbers

TEST_F(EncoderCacheManagerTest, VllmBasicAllocateAndReuse) {
  const EcUse image = use("r1", 0, 'A', 4);
  EXPECT_FALSE(manager_->check_and_update_cache(image));
  allocate(image);
  EXPECT_TRUE(manager_->check_and_update_cache(image));
  EXPECT_EQ(manager_->num_free_slots(), 6);
  manager_->free_encoder_input(image.input);
  manager_->free_encoder_input(image.input);
  EXPECT_EQ(manager_->num_uses(), 0);
  EXPECT_TRUE(is_cached('A'));
  EXPECT_EQ(manager_->num_freeable_slots(), 10);
  EXPECT_EQ(manager_->num_free_slots(), 6);
}

TEST_F(EncoderCacheManagerTest, VllmFreeingDecreasesRefcountAndMovesToFreeable) {
  const EcUse image = use("req2", 0, 3, 5);
  allocate(image);
  EXPECT_EQ(manager_->num_free_slots(), 5);
  manager_->free_encoder_input(image.input);
  EXPECT_EQ(manager_->num_freeable_slots(), 10);
  EXPECT_EQ(manager_->num_free_slots(), 5);
}

TEST_F(EncoderCacheManagerTest, VllmFreeRequestFreesAllInputs) {
  allocate(use("req3", 0, 'a', 2));
  allocate(use("req3", 1, 'b', 3));
  EXPECT_EQ(manager_->num_free_slots(), 5);
  manager_->free("req3");
  EXPECT_TRUE(is_cached('a') && is_cached('b'));
  EXPECT_EQ(manager_->num_uses(), 0);
  EXPECT_EQ(manager_->num_freeable_slots(), 10);
  EXPECT_EQ(manager_->num_free_slots(), 5);
}

TEST_F(EncoderCacheManagerTest, VllmEvictionWhenCacheIsFull) {
  const EcUse x = use("req1", 0, 'x', 6);
  allocate(x);
  EXPECT_EQ(manager_->can_allocate(5), AllocStatus::kLater);
  manager_->free_encoder_input(x.input);
  allocate(use("req2", 0, 'y', 5));
  EXPECT_FALSE(is_cached('x'));
  EXPECT_TRUE(is_cached('y'));
  EXPECT_EQ(manager_->num_free_slots(), 5);
}

TEST_F(EncoderCacheManagerTest, VllmHasCacheRestoresFromFreeable) {
  const EcUse image = use("reqY", 0, 'Z', 4);
  allocate(image);
  manager_->free_encoder_input(image.input);
  EXPECT_TRUE(manager_->check_and_update_cache(image));
  EXPECT_EQ(manager_->num_uses(), 1);
  EXPECT_EQ(manager_->num_freeable_slots(), 6);
}

TEST_F(EncoderCacheManagerTest, VllmMultiImagesRespectSpaceLimit) {
  allocate(use("reqA", 0, 'a', 5));
  EXPECT_EQ(manager_->can_allocate(6), AllocStatus::kLater);
  EXPECT_EQ(manager_->can_allocate(5), AllocStatus::kOk);
  EXPECT_EQ(manager_->can_allocate(11), AllocStatus::kNever);
}

// ---- What is more than vLLM's

TEST_F(EncoderCacheManagerTest, TheOutputThatIsUnusedLongestGoesFirst) {
  for (const uint64_t content : {1, 2, 3}) allocate(use("r", static_cast<uint32_t>(content), content, 3));
  for (const uint32_t input : {2, 3, 1}) manager_->free_encoder_input({"r", input});
  EXPECT_TRUE(manager_->check_and_update_cache(use("s", 0, 2, 3)));  // used again: now shortest
  manager_->free("s");
  allocate(use("t", 0, 4, 2));
  EXPECT_TRUE(is_cached(1) && is_cached(2) && !is_cached(3));
  allocate(use("t", 1, 5, 4));
  EXPECT_TRUE(!is_cached(1) && is_cached(2));
}

TEST_F(EncoderCacheManagerTest, AUsedOutputIsNotGivenUpAndCountsOnce) {
  allocate(use("r", 0, 1, 6));
  EXPECT_TRUE(manager_->check_and_update_cache(use("s", 7, 1, 6)));
  EXPECT_EQ(manager_->num_used_slots(), 6);
  EXPECT_EQ(manager_->num_uses(), 2);
  manager_->free_encoder_input({"r", 0});
  manager_->free_encoder_input({"r", 0});  // vLLM #55733: told at each decode step
  EXPECT_EQ(manager_->num_used_slots(), 6);
  EXPECT_EQ(manager_->can_allocate(5), AllocStatus::kLater);
  manager_->free("s");
  EXPECT_EQ(manager_->num_used_slots(), 0);
}

TEST_F(EncoderCacheManagerTest, RowsThatDidNotComeAreNotFound) {
  manager_->allocate(use("r", 0, 1, 4));
  EXPECT_FALSE(manager_->check_and_update_cache(use("r", 0, 1, 4)));
  EXPECT_FALSE(manager_->check_and_update_cache(use("s", 0, 1, 4)));
  manager_->free("r");
  EXPECT_FALSE(is_cached(1));
  EXPECT_EQ(manager_->num_free_slots(), 10);
}

TEST_F(EncoderCacheManagerTest, AnotherLengthIsNoHit) {
  allocate(use("r", 0, 1, 4));
  EXPECT_FALSE(manager_->check_and_update_cache(use("s", 0, 1, 5)));
  EXPECT_TRUE(manager_->contradicts(meta("s", 0, 1, 5)));
  EXPECT_FALSE(manager_->contradicts(meta("s", 0, 1, 4)));
  EXPECT_FALSE(manager_->contradicts(meta("s", 0, 2, 5)));
}

TEST_F(EncoderCacheManagerTest, APeersOutputHasRoomBeforeItComes) {
  const EcMeta first = meta("r", 0, 1, 4), second = meta("r", 1, 2, 6);
  EXPECT_EQ(manager_->can_allocate_disag(first), AllocStatus::kOk);
  const ReservationId room = manager_->allocate_disag(first);
  EXPECT_EQ(manager_->allocate_disag(first), room) << "an announcement that comes twice";
  EXPECT_EQ(manager_->num_uses(), 1);
  EXPECT_EQ(manager_->num_free_slots(), 6);
  EXPECT_EQ(manager_->blocks_of({"r", 0}).size(), 4u);
  EXPECT_EQ(manager_->can_allocate_disag(meta("r", 2, 3, 7)), AllocStatus::kLater);
  EXPECT_EQ(manager_->can_allocate_disag(meta("r", 2, 3, 11)), AllocStatus::kNever);
  EXPECT_EQ(manager_->can_allocate_disag(first), AllocStatus::kOk) << "it has its room";
  manager_->allocate_disag(second);
  EXPECT_FALSE(manager_->has_cached_inputs("r", 1));
  manager_->mark_written({"r", 1});
  EXPECT_FALSE(manager_->has_cached_inputs("r", 2)) << "input 0 has not come";
  manager_->mark_written({"r", 0});
  EXPECT_TRUE(manager_->has_cached_inputs("r", 2));
  EXPECT_FALSE(manager_->has_cached_inputs("r", 3));
  EXPECT_FALSE(manager_->has_cached_inputs("s", 1));
  EXPECT_TRUE(manager_->has_cached_inputs("s", 0));
  EXPECT_EQ(manager_->inputs_of("r"), (std::vector<uint32_t>{0, 1}));
  manager_->free_encoder_input({"r", 0});
  EXPECT_FALSE(manager_->has_cached_inputs("r", 2));
  EXPECT_EQ(manager_->inputs_of("r"), (std::vector<uint32_t>{1}));
  EXPECT_TRUE(manager_->blocks_of({"r", 0}).empty());
}

TEST_F(EncoderCacheManagerTest, AHitTakesNoSecondRoom) {
  manager_->allocate_disag(meta("r", 0, 1, 6));
  manager_->mark_written({"r", 0});
  EXPECT_EQ(manager_->can_allocate_disag(meta("s", 0, 1, 6)), AllocStatus::kOk);
  manager_->allocate_disag(meta("s", 0, 1, 6));
  EXPECT_TRUE(manager_->is_written({"s", 0}));
  EXPECT_EQ(manager_->num_used_slots(), 6);
  EXPECT_EQ(manager_->can_allocate(6), AllocStatus::kLater) << "an output that is made has no such luck";
}

TEST_F(EncoderCacheManagerTest, TheCapHoldsUnusedOutputsOutAndUsedOnesIn) {
  make(20, 2, 5);  // 40 slots, of which uses may hold 10
  EXPECT_EQ(manager_->max_slots(), 10);
  EXPECT_EQ(manager_->can_allocate(11), AllocStatus::kNever);
  allocate(use("r", 0, 1, 5));  // three blocks
  EXPECT_EQ(manager_->num_used_slots(), 6);
  EXPECT_EQ(manager_->num_freeable_slots(), 4);
  EXPECT_EQ(manager_->can_allocate(5), AllocStatus::kLater);
  EXPECT_EQ(manager_->can_allocate(4), AllocStatus::kOk);
  manager_->free("r");
  allocate(use("s", 0, 2, 10));
  EXPECT_TRUE(is_cached(1)) << "there are blocks";
  EXPECT_FALSE(manager_->check_and_update_cache(use("t", 0, 1, 5))) << "but no more may be used";
  EXPECT_EQ(manager_->num_freeable_slots(), 0);
  manager_->free("s");
  EXPECT_TRUE(manager_->check_and_update_cache(use("t", 0, 1, 5)));
}

TEST_F(EncoderCacheManagerTest, TheWatermarkStaysFree) {
  make(10, 1, 10, 0.2);
  EXPECT_EQ(manager_->num_free_slots(), 8);
  EXPECT_EQ(manager_->can_allocate(9), AllocStatus::kNever);
  allocate(use("r", 0, 1, 8));
  EXPECT_EQ(manager_->num_freeable_slots(), 0);
  manager_->free("r");
  EXPECT_EQ(manager_->num_freeable_slots(), 8);
  EXPECT_EQ(manager_->num_free_slots(), 0);
}

TEST(EncoderCacheManagerDeathTest, CatchesMisuse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  BlockSpaceManager::Options options;
  options.specs = {{TableOwner::kSequence}, {TableOwner::kItem, 1}, {TableOwner::kGroup}};
  options.num_device_blocks = options.max_reserved_blocks = 10;
  BlockSpaceManager keeps_none(options);
  EXPECT_DEATH(EncoderCacheManager(keeps_none, 1), "spec 1 is not of items that stay unused");
  options.keep_unused_items = true;
  BlockSpaceManager blocks(options);
  EXPECT_DEATH(EncoderCacheManager(blocks, 2), "spec 2 is not of items");
  EncoderCacheManager manager(blocks, 1);
  manager.allocate({{"r", 0}, testing::digest_of(1), 4});
  EXPECT_DEATH(manager.allocate({{"r", 0}, testing::digest_of(1), 4}), "input 0 of r has room already");
  EXPECT_DEATH(manager.allocate({{"r", 1}, testing::digest_of(2), 0}), "an output of no positions");
  EXPECT_DEATH(manager.allocate({{"r", 1}, testing::digest_of(2), 7}), "reserve without can_reserve");
  EXPECT_DEATH(manager.mark_written({"r", 1}), "input 1 of r has no room");
}

}  // namespace
}  // namespace transept
