#include "scheduling/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduling/sequence_group.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

EncoderDecoderInputs inputs() {
  EncoderDecoderInputs inputs;
  inputs.set_encoder_ids({10, 11, 12});
  inputs.prompt_token_ids = {2, 0};
  return inputs;
}

const std::vector<int32_t> kPrompt = {2, 0};

TEST(Sequence, GrowsAfterItsPrompt) {
  Sequence sequence(SeqId(1), kPrompt);
  sequence.append_token(7, -0.5);
  sequence.append_token(8, -0.25);
  EXPECT_THAT(sequence.token_ids(), ElementsAre(2, 0, 7, 8));
  EXPECT_THAT(sequence.prompt_token_ids(), ElementsAre(2, 0));
  EXPECT_THAT(sequence.output_token_ids(), ElementsAre(7, 8));
  EXPECT_DOUBLE_EQ(sequence.cumulative_logprob(), -0.75);
  EXPECT_FALSE(sequence.is_finished());
  sequence.finish(FinishReason::kStop);
  EXPECT_TRUE(sequence.is_finished());
}

TEST(Sequence, AForkGoesItsOwnWay) {
  Sequence parent(SeqId(1), kPrompt);
  parent.append_token(7, -0.5);
  parent.set_num_computed_tokens(3);
  Sequence child(SeqId(9), kPrompt);
  child.become_fork_of(parent, SeqId(2), 1);
  parent.append_token(8);
  child.append_token(9, -1);
  EXPECT_EQ(child.id(), SeqId(2));
  EXPECT_EQ(child.index(), 1);
  EXPECT_EQ(child.num_computed_tokens(), 3);
  EXPECT_DOUBLE_EQ(child.cumulative_logprob(), -1.5);
  EXPECT_THAT(child.output_token_ids(), ElementsAre(7, 9));
  EXPECT_THAT(parent.output_token_ids(), ElementsAre(7, 8));
}

TEST(SequenceDeathTest, CatchesMisuse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Sequence decoder(SeqId(1), kPrompt);
  EXPECT_DEATH(decoder.set_num_computed_tokens(3), "count <= num_tokens");
  decoder.finish(FinishReason::kAbort);
  EXPECT_DEATH(decoder.append_token(1), "has ended");
}

TEST(SequenceGroup, HoldsBothPrompts) {
  SequenceGroup::Init init;
  init.group_id = GroupId(3);
  init.first_seq_id = SeqId(5);
  init.inputs = inputs();
  init.params.max_tokens = 20;
  const SequenceGroup group(init);
  ASSERT_EQ(group.seqs().size(), 1u);
  EXPECT_EQ(group.seqs()[0]->id(), SeqId(5));
  EXPECT_THAT(group.seqs()[0]->prompt_token_ids(), ElementsAre(2, 0));
  ASSERT_EQ(group.items().size(), 1u);
  EXPECT_THAT(group.items()[0].token_ids, ElementsAre(10, 11, 12));
  EXPECT_EQ(group.num_cross_tokens(), 3);
  EXPECT_EQ(group.max_tokens_per_seq(), 22);
  EXPECT_EQ(group.find(SeqId(5)), group.seqs()[0].get());
  EXPECT_EQ(group.find(SeqId(6)), nullptr);
  EXPECT_EQ(group.state(), SequenceGroup::State::kWaiting);
}

TEST(SequenceGroup, CountsTheSequencesThatItMayBecome) {
  SequenceGroup::Init init;
  init.inputs = inputs();
  EXPECT_EQ(SequenceGroup(init).max_running_seqs(), 1);
  init.params.n = 3;
  EXPECT_EQ(SequenceGroup(init).max_running_seqs(), 3);
  init.params.num_beams = 8;  // n: how many of them come back
  EXPECT_EQ(SequenceGroup(init).max_running_seqs(), 8);
}

TEST(SequenceGroup, AnEncoderInputNeedNotBeIds) {
  SequenceGroup::Init init;
  init.inputs.prompt_token_ids = {1};
  EXPECT_THAT(SequenceGroup(init).items(), IsEmpty());
  EXPECT_EQ(SequenceGroup(init).num_cross_tokens(), 0);
  auto features = std::make_shared<EncoderFeatures>();
  features->num_positions = 1500;
  init.inputs.set_encoder_features(features);
  const SequenceGroup group(init);
  EXPECT_EQ(group.num_cross_tokens(), 1500);
  EXPECT_THAT(group.items()[0].token_ids, IsEmpty());
  EXPECT_EQ(group.items()[0].features, features);
}

// Those that are spliced have tables of their own, in order.
TEST(SequenceGroup, CountsItsSplicedItems) {
  SequenceGroup::Init init;
  init.inputs.prompt_token_ids = {1, 2, 3, 4};
  init.inputs.items = {EncoderItem({1}), EncoderItem({2, 2}), EncoderItem({3, 3, 3})};
  init.inputs.items[0].consumers = init.inputs.items[2].consumers = Consumers::kSplice;
  init.inputs.items[1].consumers = Consumers::kCross;
  const SequenceGroup crossed(init);
  EXPECT_EQ(crossed.num_cross_tokens(), 2);
  EXPECT_EQ(crossed.num_spliced_before(0), 0u);
  EXPECT_EQ(crossed.num_spliced_before(2), 1u);
  init.inputs.items[1].consumers = Consumers::kSplice;
  const SequenceGroup spliced(init);
  EXPECT_EQ(spliced.num_cross_tokens(), 0);
  EXPECT_EQ(spliced.num_spliced_before(0), 0u);
  EXPECT_EQ(spliced.num_spliced_before(2), 2u);
  EXPECT_EQ(spliced.rows_digest(1), std::nullopt) << "shared with none";
}

}  // namespace
}  // namespace transept
