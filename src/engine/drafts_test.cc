// Proves that drafts change no answer by a bit: greedy, sampled, several answers, beams beside them, scores, edits and
// captures of every family, with drafts that are right, wrong and both, of every method, over pools that preempt.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/family_requests_testing.h"

namespace transept {
namespace {

using testing::Answers;
using testing::Circumstances;

class Drafts : public testing::FamilyRequests {
 protected:
  // The answer that is known, with every `rarity`-th token another.
  void complete(const std::string& id, SamplingParams& params) override {
    const auto known = truth_.find(id);
    if (known == truth_.end() || params.num_beams > 1) return;
    params.draft_token_ids = known->second.ids.at(0);
    for (size_t i = static_cast<size_t>(rarity_); i <= params.draft_token_ids.size();
         i += static_cast<size_t>(rarity_)) {
      params.draft_token_ids[i - 1] = (params.draft_token_ids[i - 1] + 1) % 7;
    }
  }

  // Every pair of a method and of what a pool is like.
  std::vector<Circumstances> drafted(Circumstances setup) const {
    std::vector<Circumstances> all;
    for (const DraftMethod method :
         {DraftMethod::kGiven, DraftMethod::kNgram, DraftMethod::kCopy, DraftMethod::kRandom}) {
      setup.speculation.method = method;
      setup.speculation.is_adaptive = false;
      setup.speculation.num_speculative_tokens = method == DraftMethod::kGiven ? 9 : 4;
      setup.speculation.prompt_lookup_min = 1;
      setup.speculation.truth = method == DraftMethod::kRandom ? std::optional<double>(0.8) : std::nullopt;
      setup.name = "method " + std::to_string(static_cast<int>(method));
      all.push_back(setup);
    }
    return all;
  }

  Answers truth_;
  int32_t rarity_ = 3;
  DraftStats drafts_;

  // A request that encodes again has its rows twice, and drafts change which is preempted.
  Answers answers_of(LLMEngine& engine, const Circumstances& setup) {
    Answers answers = run(engine);
    for (auto& [id, answer] : answers) {
      if (setup.swap_space > 0) answer.encoder.clear();
    }
    return answers;
  }

  void expect_same(const Circumstances& setup) {
    truth_.clear();
    const Answers want = answers_of(*make_engine(setup), setup);
    for (const Circumstances& with_drafts : drafted(setup)) {
      SCOPED_TRACE(with_drafts.name);
      truth_ = want;
      if (with_drafts.speculation.method == DraftMethod::kNgram) truth_.clear();
      const std::unique_ptr<LLMEngine> engine = make_engine(with_drafts);
      const Answers got = answers_of(*engine, setup);
      ASSERT_EQ(got.size(), want.size());
      for (const auto& [id, answer] : want) EXPECT_TRUE(got.at(id) == answer) << "request " << id;
      const DraftStats& drafts = engine->stats().drafts;
      drafts_.num_draft_tokens += drafts.num_draft_tokens;
      drafts_.num_accepted_tokens += drafts.num_accepted_tokens;
      const BlockSpaceManager& blocks = engine->scheduler().blocks();
      EXPECT_EQ(blocks.num_available_device_blocks(), blocks.num_device_blocks());
    }
  }
};

TEST_P(Drafts, ChangeNoBitOfAnAnswer) {
  const std::vector<std::string> folders = testing::folders();
  const auto folder = std::find(folders.begin(), folders.end(), GetParam()) - folders.begin();
  const DType types[] = {DType::kFloat32, DType::kInt8, DType::kFloat16, DType::kBFloat16};
  Circumstances setup{.name = "plenty", .kv = types[folder % 4]};
  setup.block_size = 1 + static_cast<int32_t>(folder % 5);
  if (folder % 3 == 0) setup.weights = kInt8Format;
  expect_same(setup);
  EXPECT_GT(drafts_.num_draft_tokens, 50);
  EXPECT_GT(drafts_.num_accepted_tokens, 10);
  EXPECT_LT(drafts_.num_accepted_tokens, drafts_.num_draft_tokens);
}

TEST_P(Drafts, ChangeNoBitBesidePreemptions) {
  Circumstances setup{.name = "swaps"};
  const std::unique_ptr<LLMEngine> wide = make_engine(setup);
  const ExecutorInfo& info = wide->executor().info();
  if (!info.spec.encoder_takes_ids()) return;
  testing::make_tight(info, setup);
  for (const PreemptionMode mode : {PreemptionMode::kSwap, PreemptionMode::kRecompute}) {
    setup.preemption = mode;
    setup.name = mode == PreemptionMode::kSwap ? "swap" : "recompute";
    expect_same(setup);
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Drafts, ::testing::ValuesIn(testing::in_turn(testing::folders(), 1)),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
