#include "scheduling/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/allocation_count_testing.h"
#include "base/content_digest_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

BlockSpaceManager::Options block_options() {
  return {.block_size = 4, .num_device_blocks = 256, .num_host_blocks = 16, .watermark = 0};
}

std::unique_ptr<SequenceGroup> make_group(Scheduler& scheduler, uint64_t id, SamplingParams params,
                                          std::vector<int32_t> decoder = {2, 0},
                                          std::vector<int32_t> encoder = {4, 5, 6, 7}) {
  SequenceGroup::Init init;
  init.group_id = GroupId(id);
  init.first_seq_id = scheduler.next_seq_id();
  init.inputs.prompt_token_ids = std::move(decoder);
  init.inputs.set_encoder_ids(std::move(encoder));
  init.params = std::move(params);
  return std::make_unique<SequenceGroup>(init);
}

SamplingParams max_tokens(int32_t count) {
  SamplingParams params;
  params.max_tokens = count;
  return params;
}

// Gives every sampled sequence the token 1.
void feed_ones(Scheduler& scheduler, const SchedulerOutputs& plan) {
  scheduler.mark_computed(plan);
  for (const SequenceGroupMetadata& group : plan.groups) {
    for (const SequenceData& data : group.seq_data) {
      if (data.sampled) scheduler.find(group.group_id)->find(data.seq_id)->append_token(1);
    }
  }
}

TEST(Scheduler, RefusesBadOptions) {
  Scheduler::Options options;
  EXPECT_TRUE(options.validate().ok());
  options.max_num_seqs = 0;
  EXPECT_EQ(error_param(options.validate()), "max_num_seqs");
  options = {};
  options.max_num_encoder_tokens = 0;
  EXPECT_EQ(error_param(options.validate()), "max_num_encoder_tokens");
  options = {};
  options.max_num_batched_tokens = options.max_num_seqs - 1;
  EXPECT_EQ(error_param(options.validate()), "max_num_batched_tokens");
}

// 256 blocks: a group may need all that neither the watermark nor reservations may take.
TEST(Scheduler, AGroupIsSizedWithoutWhatReservationsMayTake) {
  FakeClock clock;
  BlockSpaceManager::Options blocks = block_options();
  blocks.max_reserved_blocks = 200;
  Scheduler scheduler(Scheduler::Options(), blocks, clock);
  // One block of encoder tokens, and 55 of 2 + 218 decoder tokens.
  EXPECT_TRUE(scheduler.add_seq_group(make_group(scheduler, 1, max_tokens(218))).ok());
  const Status refused = scheduler.add_seq_group(make_group(scheduler, 2, max_tokens(219)));
  EXPECT_THAT(error_message(refused), ::testing::EndsWith("; there are 56"));
}

// One sequence runs at a time: in which order groups come to run.
class Order {
 public:
  Order() {
    options_.max_num_seqs = 1;
    scheduler_.emplace(options_, block_options(), clock_);
  }
  void add(uint64_t id, int32_t priority) {
    SequenceGroup::Init init;
    init.group_id = GroupId(id);
    init.first_seq_id = scheduler_->next_seq_id();
    init.inputs.prompt_token_ids = {2};
    init.inputs.set_encoder_ids({4, 5});
    init.params = max_tokens(1);
    init.priority = priority;
    CHECK(scheduler_->add_seq_group(std::make_unique<SequenceGroup>(init)).ok());
    EXPECT_EQ(scheduler_->check_invariants(), ok_status());
  }
  // The group that runs now, and ends.
  uint64_t next() {
    SchedulerOutputs plan;
    scheduler_->schedule(plan);
    CHECK(plan.groups.size() == 1);
    feed_ones(*scheduler_, plan);
    SequenceGroup& group = *scheduler_->find(plan.groups[0].group_id);
    const uint64_t id = group.group_id().value();
    scheduler_->finish_sequence(group, group.seqs()[0]->id(), FinishReason::kLength);
    scheduler_->free_finished_seq_groups();
    return id;
  }

  FakeClock clock_;

 private:
  Scheduler::Options options_;
  std::optional<Scheduler> scheduler_;
};

TEST(SchedulerPriority, LowerLevelsComeFirstAndEqualOnesInOrderOfArrival) {
  Order order;
  for (const auto& [id, priority] : {std::pair(1, 0), {2, 0}, {3, -1}, {4, 3}, {5, -2}, {6, -1}, {7, 0}}) {
    order.add(static_cast<uint64_t>(id), priority);
  }
  for (const uint64_t id : {5, 3, 6, 1, 2, 7, 4}) EXPECT_EQ(order.next(), id);
}

TEST(SchedulerPriority, ALevelIsASecondSoNothingStarves) {
  Order order;
  order.add(1, 0);
  order.clock_.advance(std::chrono::milliseconds(1900));
  order.add(2, -2);  // came 1.9 s later, and is two levels earlier
  order.clock_.advance(std::chrono::milliseconds(200));
  order.add(3, -2);  // 2.1 s later
  for (const uint64_t id : {2, 1, 3}) EXPECT_EQ(order.next(), id);
}

// Two requests that have their first token, and the plan of their next; blocks of four tokens.
class Drafting {
 public:
  explicit Drafting(const BlockSpaceManager::Options& blocks, int32_t max_num_batched_tokens = 64)
      : scheduler_(options_of(max_num_batched_tokens), blocks, clock_) {
    if (blocks.cache_inputs) leave_an_input();
    for (uint64_t id : {1, 2}) CHECK(scheduler_.add_seq_group(make_group(scheduler_, id, max_tokens(9))).ok());
    scheduler_.schedule(plan_);
    feed_ones(scheduler_, plan_);
    scheduler_.schedule(plan_);
  }

  const Sequence& sequence(uint64_t group) const { return *scheduler_.find(GroupId(group))->seqs()[0]; }
  // The step is executed, `num_kept` drafts of the first request become tokens, and one more token comes for each.
  void settle(int32_t num_kept) {
    scheduler_.mark_computed(plan_);
    Sequence& first = *scheduler_.find(GroupId(1))->seqs()[0];
    for (int32_t i = 0; i < num_kept; ++i) first.append_token(1);
    for (uint64_t id : {1, 2}) scheduler_.find(GroupId(id))->seqs()[0]->append_token(1);
    scheduler_.settle_drafts(first, num_kept);
    EXPECT_EQ(scheduler_.check_invariants(), ok_status());
  }

  FakeClock clock_;
  Scheduler scheduler_;
  SchedulerOutputs plan_;

 private:
  static Scheduler::Options options_of(int32_t max_num_batched_tokens) {
    Scheduler::Options options;
    options.max_num_seqs = 4;
    options.max_num_batched_tokens = max_num_batched_tokens;
    return options;
  }
  // A request that is gone, whose input stays: a block of four positions.
  void leave_an_input() {
    SequenceGroup::Init init;
    init.group_id = GroupId(9);
    init.first_seq_id = scheduler_.next_seq_id();
    init.inputs.prompt_token_ids = {2};
    init.inputs.set_encoder_ids({7, 7, 7, 7});
    init.inputs.make_digests();
    init.params = max_tokens(1);
    init.shares_items = true;
    CHECK(scheduler_.add_seq_group(std::make_unique<SequenceGroup>(init)).ok());
    scheduler_.schedule(plan_);
    feed_ones(scheduler_, plan_);
    SequenceGroup& group = *scheduler_.find(init.group_id);
    scheduler_.finish_sequence(group, group.seqs()[0]->id(), FinishReason::kLength);
    scheduler_.free_finished_seq_groups();
  }
};

TEST(SchedulerDrafts, AreRowsBehindTheLastTokenAndGoAgain) {
  Drafting drafting(block_options());
  Scheduler& scheduler = drafting.scheduler_;
  const std::vector<int32_t> drafts = {1, 1, 7, 8, 9, 10};
  EXPECT_EQ(scheduler.add_drafts(drafting.plan_, 0, 0, drafts), 6);
  const SequenceGroupMetadata& group = drafting.plan_.groups[0];
  EXPECT_THAT(group.seq_data[0].token_ids, ElementsAre(1, 1, 1, 7, 8, 9, 10));
  EXPECT_EQ(group.seq_data[0].context_len, 2);
  EXPECT_EQ(group.seq_data[0].num_drafts, 6);
  EXPECT_EQ(group.seq_data[0].first_logits_row, 0);
  EXPECT_EQ(group.sequence_table(0, 0).size(), 3u) << "nine slots";
  EXPECT_EQ(drafting.plan_.num_decoder_tokens, 8);
  EXPECT_EQ(drafting.plan_.num_draft_tokens, 6);
  drafting.settle(2);
  EXPECT_EQ(drafting.sequence(1).num_tokens(), 6);
  EXPECT_EQ(drafting.sequence(1).num_computed_tokens(), 5);
  EXPECT_EQ(scheduler.blocks().num_slots(drafting.sequence(1).id()), 5);
  EXPECT_EQ(scheduler.blocks().get_block_table(drafting.sequence(1).id()).size(), 2u);
  scheduler.schedule(drafting.plan_);
  EXPECT_THAT(drafting.plan_.groups[0].seq_data[0].token_ids, ElementsAre(1));
  EXPECT_EQ(drafting.plan_.groups[0].seq_data[0].context_len, 5);
  EXPECT_EQ(drafting.plan_.groups[0].seq_data[0].num_drafts, 0);
}

TEST(SchedulerDrafts, TakeOnlyWhatTheTokenBudgetLeaves) {
  Drafting drafting(block_options(), 7);
  Scheduler& scheduler = drafting.scheduler_;
  EXPECT_EQ(scheduler.num_spare_tokens(), 5);
  const std::vector<int32_t> drafts = {1, 2, 3, 4};
  EXPECT_EQ(scheduler.add_drafts(drafting.plan_, 1, 0, drafts), 4);
  EXPECT_EQ(scheduler.add_drafts(drafting.plan_, 0, 0, drafts), 1);
  EXPECT_EQ(scheduler.num_spare_tokens(), 0);
}

// Of five blocks the two inputs and the two requests have one each.
TEST(SchedulerDrafts, TakeOnlyBlocksThatAreFree) {
  BlockSpaceManager::Options blocks = block_options();
  blocks.num_device_blocks = 5;
  blocks.num_host_blocks = 0;
  Drafting drafting(blocks);
  Scheduler& scheduler = drafting.scheduler_;
  EXPECT_EQ(scheduler.blocks().get_num_free_device_blocks(), 1);
  const std::vector<int32_t> drafts = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(scheduler.add_drafts(drafting.plan_, 0, 0, drafts), 5) << "one slot was left in the block";
  EXPECT_EQ(scheduler.blocks().get_num_free_device_blocks(), 0);
  EXPECT_EQ(scheduler.add_drafts(drafting.plan_, 1, 0, drafts), 1);
  drafting.settle(0);
  EXPECT_EQ(scheduler.blocks().get_num_free_device_blocks(), 1) << "they leave what they took";
}

// A cache that fills the pool would end drafts for ever.
TEST(SchedulerDrafts, TakeBlocksOfWhatStaysForLaterRequests) {
  BlockSpaceManager::Options blocks = block_options();
  blocks.num_device_blocks = 5;
  blocks.num_host_blocks = 0;
  blocks.share_identical_inputs = blocks.cache_inputs = true;
  Drafting drafting(blocks);
  Scheduler& scheduler = drafting.scheduler_;
  EXPECT_EQ(scheduler.blocks().get_num_free_device_blocks(), 0);
  EXPECT_EQ(scheduler.blocks().num_available_device_blocks(), 1);
  EXPECT_EQ(scheduler.add_drafts(drafting.plan_, 0, 0, std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7}), 5);
  EXPECT_EQ(scheduler.blocks().num_available_device_blocks(), 0);
  drafting.settle(0);
  EXPECT_EQ(scheduler.blocks().get_num_free_device_blocks(), 1);
}

TEST(SchedulerDrafts, OfAPlanThatWasNotExecutedKeepTheirSlots) {
  Drafting drafting(block_options());
  Scheduler& scheduler = drafting.scheduler_;
  const std::vector<int32_t> drafts = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(scheduler.add_drafts(drafting.plan_, 0, 0, drafts), 6);
  scheduler.schedule(drafting.plan_);
  EXPECT_EQ(scheduler.add_drafts(drafting.plan_, 0, 0, std::span(drafts).first(2)), 2);
  EXPECT_THAT(drafting.plan_.groups[0].seq_data[0].token_ids, ElementsAre(1, 1, 2));
  drafting.settle(1);
  EXPECT_EQ(scheduler.blocks().num_slots(drafting.sequence(1).id()), 4);
}

TEST(Scheduler, PlansValues) {
  FakeClock clock;
  Scheduler::Options options;
  Scheduler scheduler(options, block_options(), clock);
  ASSERT_TRUE(scheduler.add_seq_group(make_group(scheduler, 1, max_tokens(8), {2, 0, 9})).ok());
  clock.advance(std::chrono::seconds(3));
  SchedulerOutputs plan;
  scheduler.schedule(plan);

  ASSERT_EQ(plan.groups.size(), 1u);
  const SequenceGroupMetadata& group = plan.groups[0];
  EXPECT_EQ(group.group_id, GroupId(1));
  EXPECT_TRUE(group.is_prompt);
  ASSERT_EQ(group.seq_data.size(), 1u);
  EXPECT_THAT(group.seq_data[0].token_ids, ElementsAre(2, 0, 9));
  EXPECT_EQ(group.seq_data[0].context_len, 0);
  EXPECT_TRUE(group.seq_data[0].sampled);
  EXPECT_EQ(group.seq_data[0].first_logits_row, 2);
  EXPECT_THAT(group.encoder_token_ids, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(group.num_cross_tokens, 4);
  ASSERT_EQ(plan.encodes.size(), 1u);
  EXPECT_EQ(plan.encodes[0].group_id, GroupId(1));
  EXPECT_EQ(plan.encodes[0].item, 0);
  EXPECT_THAT(plan.encodes[0].token_ids, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(plan.encodes[0].num_positions, 4);
  EXPECT_EQ(plan.encodes[0].writes, Consumers::kCross);
  EXPECT_EQ(plan.encodes[0].group_tables, group.group_tables);
  EXPECT_EQ(scheduler.find(GroupId(1))->first_scheduled_time() - TimePoint(), std::chrono::seconds(3));

  feed_ones(scheduler, plan);
  scheduler.schedule(plan);
  EXPECT_FALSE(plan.groups[0].is_prompt);
  EXPECT_THAT(plan.groups[0].seq_data[0].token_ids, ElementsAre(1));
  EXPECT_EQ(plan.groups[0].seq_data[0].context_len, 3);
  EXPECT_TRUE(plan.encodes.empty());
}

// A rank may never have seen them; what it has computed once it keeps.
TEST(Scheduler, EncoderIdsComeUntilAStepWasComputed) {
  FakeClock clock;
  BlockSpaceManager::Options sharing = block_options();
  sharing.share_identical_inputs = true;
  Scheduler scheduler({}, sharing, clock);
  for (const uint64_t id : {1, 2}) {
    SequenceGroup::Init init;
    init.group_id = GroupId(id);
    init.first_seq_id = scheduler.next_seq_id();
    init.inputs.prompt_token_ids = {2, 0};
    init.inputs.set_encoder_ids({4, 5, 6, 7});
    init.inputs.items[0].digest = testing::digest_of(9);  // the second finds the first's cross table
    init.shares_items = true;
    init.params = max_tokens(8);
    ASSERT_TRUE(scheduler.add_seq_group(std::make_unique<SequenceGroup>(init)).ok());
  }
  SchedulerOutputs plan;
  for (int attempt = 0; attempt < 2; ++attempt) {  // the first is not executed
    scheduler.schedule(plan);
    ASSERT_EQ(plan.groups.size(), 2u);
    EXPECT_EQ(plan.encodes.size(), 1u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_THAT(plan.groups[i].encoder_token_ids, ElementsAre(4, 5, 6, 7)) << attempt << ": " << i;
    }
  }
  feed_ones(scheduler, plan);
  scheduler.schedule(plan);
  ASSERT_EQ(plan.groups.size(), 2u);
  for (const SequenceGroupMetadata& group : plan.groups) {
    EXPECT_THAT(group.encoder_token_ids, IsEmpty());
    EXPECT_EQ(group.num_cross_tokens, 4);
  }
}

TEST(Scheduler, MediaLieInThePlanInTheStepThatEncodesThem) {
  FakeClock clock;
  Scheduler scheduler({}, block_options(), clock);
  for (const uint64_t id : {1, 2}) {
    SequenceGroup::Init init;
    init.group_id = GroupId(id);
    init.first_seq_id = scheduler.next_seq_id();
    init.inputs.prompt_token_ids = {2, 0};
    auto features = std::make_shared<EncoderFeatures>();
    features->shape = {2, static_cast<int64_t>(id)};
    for (uint64_t i = 0; i < 2 * id; ++i) features->values.push_back(static_cast<float>(10 * id + i));
    features->num_positions = 3;
    init.inputs.set_encoder_features(std::move(features));
    init.params = max_tokens(8);
    ASSERT_TRUE(scheduler.add_seq_group(std::make_unique<SequenceGroup>(init)).ok());
  }
  SchedulerOutputs plan;
  scheduler.schedule(plan);
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_THAT(plan.bulk, ElementsAre(10, 11, 20, 21, 22, 23));
  ASSERT_EQ(plan.encodes.size(), 2u);
  EXPECT_THAT(plan.encodes[0].features.shape, ElementsAre(2, 1));
  EXPECT_EQ(plan.encodes[0].features.begin, 0);
  EXPECT_THAT(plan.encodes[1].features.shape, ElementsAre(2, 2));
  EXPECT_EQ(plan.encodes[1].features.begin, 2);
  feed_ones(scheduler, plan);
  scheduler.schedule(plan);
  EXPECT_THAT(plan.bulk, IsEmpty());
  EXPECT_TRUE(plan.encodes.empty());
}

TEST(Scheduler, NamesTheGroupsThatAreGone) {
  FakeClock clock;
  Scheduler scheduler({}, block_options(), clock);
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(scheduler.add_seq_group(make_group(scheduler, id, max_tokens(8))).ok());
  }
  SchedulerOutputs plan;
  scheduler.schedule(plan);
  EXPECT_THAT(plan.finished, IsEmpty());
  feed_ones(scheduler, plan);
  SequenceGroup& group = *scheduler.find(GroupId(2));
  scheduler.finish_sequence(group, group.seqs()[0]->id(), FinishReason::kStop);
  scheduler.free_finished_seq_groups();
  EXPECT_EQ(scheduler.find(GroupId(2)), nullptr);
  EXPECT_TRUE(scheduler.abort_seq_group(GroupId(1)));
  scheduler.schedule(plan);
  EXPECT_THAT(plan.finished, ElementsAre(GroupId(2), GroupId(1)));
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].group_id, GroupId(3));
  scheduler.schedule(plan);
  EXPECT_THAT(plan.finished, IsEmpty());
}

TEST(Scheduler, AnEmptyPlanHidesNothing) {
  FakeClock clock;
  BlockSpaceManager::Options blocks = block_options();
  blocks.track_freed_blocks = true;
  Scheduler scheduler({}, blocks, clock);
  ASSERT_TRUE(scheduler.add_seq_group(make_group(scheduler, 1, max_tokens(8))).ok());
  SchedulerOutputs plan;
  scheduler.schedule(plan);
  scheduler.abort_seq_group(GroupId(1));
  scheduler.schedule(plan);
  EXPECT_TRUE(plan.empty());
  EXPECT_THAT(plan.moves.freed_device, IsEmpty());
  ASSERT_TRUE(scheduler.add_seq_group(make_group(scheduler, 2, max_tokens(8))).ok());
  scheduler.schedule(plan);
  EXPECT_THAT(plan.finished, ElementsAre(GroupId(1)));
  EXPECT_EQ(plan.moves.freed_device.size(), 2u);
}

TEST(Scheduler, ASequenceThatEndsGivesItsBlocksBack) {
  FakeClock clock;
  Scheduler scheduler({}, block_options(), clock);
  SamplingParams params = max_tokens(8);
  params.n = 2;
  ASSERT_TRUE(scheduler.add_seq_group(make_group(scheduler, 1, params)).ok());
  SchedulerOutputs plan;
  scheduler.schedule(plan);
  scheduler.mark_computed(plan);
  SequenceGroup& group = *scheduler.find(GroupId(1));
  Sequence& child = scheduler.fork_sequence(group, group.seqs()[0]->id());
  EXPECT_EQ(child.index(), 1);
  for (const auto& seq : group.seqs()) seq->append_token(3);
  scheduler.schedule(plan);
  EXPECT_EQ(scheduler.blocks().get_num_free_device_blocks(), 256 - 3);
  scheduler.mark_computed(plan);
  scheduler.finish_sequence(group, group.seqs()[0]->id(), FinishReason::kStop);
  EXPECT_EQ(scheduler.blocks().get_num_free_device_blocks(), 256 - 2);
  EXPECT_EQ(group.max_running_seqs(), 1);
  EXPECT_FALSE(group.is_finished());
  child.append_token(4);
  scheduler.schedule(plan);
  ASSERT_EQ(plan.groups[0].seq_data.size(), 1u);
  EXPECT_EQ(plan.groups[0].seq_data[0].index, 1);
  EXPECT_TRUE(scheduler.check_invariants().ok());
}

// The plan's vectors, tables and sequences have their memory from admission on: a decode step allocates nothing, as
// blocks are taken and beams fork and end. Nor do two plans in flight.
void expect_no_allocations(int32_t max_in_flight) {
  FakeClock clock;
  Scheduler::Options options;
  options.max_num_seqs = 32;
  options.max_steps_in_flight = max_in_flight;
  BlockSpaceManager::Options blocks = block_options();
  blocks.num_device_blocks = 2048;
  blocks.track_freed_blocks = true;
  Scheduler scheduler(options, blocks, clock);
  for (uint64_t id = 1; id <= 8; ++id) {
    SamplingParams params = max_tokens(100);
    if (id % 2 == 0) params.num_beams = 4;
    ASSERT_TRUE(scheduler.add_seq_group(make_group(scheduler, id, params)).ok());
  }
  std::vector<SchedulerOutputs> plans(static_cast<size_t>(max_in_flight));
  size_t oldest = 0;
  int32_t num_tokens = 0;
  const auto step = [&] {
    for (bool has_plan = true; has_plan && scheduler.may_schedule();) {
      const size_t next = (oldest + static_cast<size_t>(scheduler.num_steps_in_flight())) % plans.size();
      scheduler.schedule(plans[next]);
      has_plan = !plans[next].empty();
    }
    const SchedulerOutputs& plan = plans[oldest];
    oldest = (oldest + 1) % plans.size();
    scheduler.mark_computed(plan);
    num_tokens = plan.num_decoder_tokens;
    for (const SequenceGroupMetadata& metadata : plan.groups) {
      SequenceGroup& group = *scheduler.find(metadata.group_id);
      if (metadata.group_id.value() % 2 == 0) {
        // The first beam has two children, the second none.
        while (group.num_unfinished() < 4) scheduler.fork_sequence(group, group.seqs()[0]->id());
        scheduler.fork_sequence(group, group.seqs()[0]->id());
        scheduler.remove_sequence(group, group.seqs()[1]->id());
      }
      for (const auto& seq : group.seqs()) seq->append_token(1);
    }
  };
  const int64_t start = testing::num_allocations();
  for (int i = 0; i < 20 * max_in_flight; ++i) step();
  const int64_t before = testing::num_allocations();
  EXPECT_GT(before, start);  // warming up does
  for (int i = 0; i < 60 * max_in_flight; ++i) step();
  EXPECT_EQ(testing::num_allocations() - before, 0) << max_in_flight;
  const int32_t num_all = 4 + 16;
  EXPECT_TRUE(max_in_flight == 1 ? num_tokens == num_all : num_tokens < num_all) << num_tokens;
  EXPECT_TRUE(scheduler.check_invariants().ok());
}

TEST(Scheduler, ASteadyDecodeStepAllocatesNothing) {
  expect_no_allocations(1);
  expect_no_allocations(2);
}

TEST(SchedulerDeathTest, CatchesMisuse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  FakeClock clock;
  Scheduler scheduler({}, block_options(), clock);
  ASSERT_TRUE(scheduler.add_seq_group(make_group(scheduler, 1, max_tokens(8))).ok());
  EXPECT_DEATH((void)scheduler.add_seq_group(make_group(scheduler, 1, max_tokens(8))), "is here already");
  SchedulerOutputs plan;
  scheduler.schedule(plan);
  SequenceGroup& group = *scheduler.find(GroupId(1));
  EXPECT_DEATH(scheduler.fork_sequence(group, group.seqs()[0]->id()), "fork before tokens are appended");
  scheduler.mark_computed(plan);
  EXPECT_DEATH(scheduler.schedule(plan), "was given no token and has not ended");
}

}  // namespace
}  // namespace transept
