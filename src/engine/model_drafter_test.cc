// Proves that a draft model changes no bit of an answer, and that it follows the sequences exactly: a model that drafts
// for itself is right with every token of a greedy answer. A state that is stale, of another sequence or short of a
// token changes no text, and is seen by what is accepted alone.
#include "engine/model_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/checked_math.h"
#include "base/sanitized_testing.h"
#include "engine/family_requests_testing.h"

namespace transept {
namespace {

using testing::Answers;
using testing::Circumstances;
using testing::kPool;

// A decoder that crosses in every layer, and has positions of one axis.
std::vector<std::string> folders() {
  std::vector<std::string> all = testing::folders();
  std::erase_if(all, [](const std::string& name) {
    const bool does_more = name.starts_with("qwen2") || name.starts_with("mllama") || name.starts_with("cogagent");
    return does_more || name == "whisper-transcribes";
  });
  return all;
}

struct Drafting {
  std::string folder = "";      // of the draft model; "": the target's
  bool shares_encoder = false;  // it has a decoder alone
  uint64_t pool = kPool;
  bool caches = false;
  std::optional<double> truth = std::nullopt;  // SpeculationOptions::truth
};

// Fails from a step on.
class FailingExecutor final : public Executor {
 public:
  FailingExecutor(std::unique_ptr<Executor> of, int32_t num_steps) : of_(std::move(of)), num_left_(num_steps) {}

  const ExecutorInfo& info() const override { return of_->info(); }
  Status submit(const StepPlan& plan) override { return of_->submit(plan); }
  Status collect(uint64_t step, StepOutput& output) override {
    if (--num_left_ < 0) return absl::InternalError("it is broken");
    return of_->collect(step, output);
  }
  ExecutorStats stats() const override { return of_->stats(); }
  int32_t num_calls_after() const { return -num_left_; }

 private:
  std::unique_ptr<Executor> of_;
  int32_t num_left_;
};

class ModelDrafts : public testing::FamilyRequests {
 protected:
  DraftModel draft_model(const Circumstances& setup, const Drafting& drafting) const {
    const std::string path = drafting.folder.empty() ? config_.path : testing::checkpoint_path(drafting.folder);
    ModelRunnerOptions options = options_of(setup);
    options.kv_cache_memory = drafting.pool;
    options.swap_space = 0;
    options.max_model_len_may_exceed = true;
    if (drafting.shares_encoder) options.part = ModelPart::kDecoder;
    auto runner =
        EncoderDecoderModelRunner::create(ModelConfig::load(path).value(), WeightMap::open(path).value(), options);
    CHECK(runner.ok(), error_message(runner.status()));
    return {std::make_unique<LocalExecutor>(std::move(runner).value()), drafting.shares_encoder};
  }

  std::unique_ptr<LLMEngine> make_drafted(const Circumstances& setup, const Drafting& drafting = {}) const {
    return make_drafted(setup, drafting, draft_model(setup, drafting));
  }
  std::unique_ptr<LLMEngine> make_drafted(const Circumstances& setup, const Drafting& drafting,
                                          DraftModel model) const {
    auto runner =
        EncoderDecoderModelRunner::create(config_, WeightMap::open(config_.path).value(), options_of(setup)).value();
    auto executor = std::make_unique<LocalExecutor>(std::move(runner));
    LLMEngine::Options options = LLMEngine::Options::of(executor->info());
    options.blocks.watermark = 0;
    options.blocks.track_freed_blocks = true;
    options.blocks.share_identical_inputs = options.blocks.cache_inputs = drafting.caches;
    options.scheduler.preemption_mode = setup.preemption;
    options.speculation.method = DraftMethod::kModel;
    options.speculation.num_speculative_tokens = 4;
    options.speculation.is_adaptive = false;
    options.speculation.truth = drafting.truth;
    return std::make_unique<LLMEngine>(options, std::move(executor), nullptr, clock_, std::move(model));
  }

  // Greedy and different ones, all at once.
  void add_greedy(LLMEngine& engine, int32_t count, int32_t first = 0) {
    const ModelSpec& spec = engine.executor().info().spec;
    for (int32_t i = first; i < first + count; ++i) {
      EncoderDecoderInputs inputs = inputs_of(spec, i % 4);
      SamplingParams params;
      const auto num_prompt = static_cast<int32_t>(inputs.prompt_token_ids.size());
      params.max_tokens = std::min(12 + i % 3, spec.max_decoder_positions - num_prompt);
      // What forbids and penalises tokens holds for drafts, too.
      if (i % 3 == 1) params.no_repeat_ngram_size = 2;
      if (i % 3 == 2) params.repetition_penalty = 1.5f;
      const Status added = engine.add_request(std::to_string(i), std::move(inputs), params);
      CHECK(added.ok(), error_message(added));
    }
  }

  void step(LLMEngine& engine, Answers& answers) {
    std::vector<RequestOutput> outputs;
    const EngineStats before = engine.stats();
    const int64_t num_fed = engine.model_drafter() == nullptr ? 0 : engine.model_drafter()->num_fed_tokens();
    const Status stepped = engine.step(outputs);
    CHECK(stepped.ok(), error_message(stepped));
    if (engine.model_drafter() != nullptr && engine.stats().num_prompt_tokens > before.num_prompt_tokens) {
      EXPECT_EQ(engine.model_drafter()->num_fed_tokens(), num_fed) << "a prompt waited for drafts";
    }
    for (const RequestOutput& output : outputs) {
      EXPECT_EQ(output.error, "");
      for (const CompletionOutput& one : output.outputs) {
        answers[output.request_id].ids.push_back(one.token_ids);
        answers[output.request_id].logprobs.push_back(one.cumulative_logprob);
      }
    }
    const ModelDrafter* drafter = engine.model_drafter();
    if (drafter == nullptr) return;
    const Status sound = drafter->blocks().check_invariants();
    EXPECT_TRUE(sound.ok()) << sound;
    for (const auto& groups : {engine.scheduler().waiting(), engine.scheduler().swapped()}) {
      for (const SequenceGroup* group : groups) {
        for (const auto& seq : group->seqs()) {
          EXPECT_FALSE(drafter->has(seq->id())) << "of request " << group->request_id() << ", which does not run";
        }
      }
    }
  }

  Answers finish(LLMEngine& engine) {
    Answers answers;
    while (engine.has_unfinished_requests()) step(engine, answers);
    return answers;
  }

  // What is idle counts as free. One step more takes note of what has ended.
  static void expect_nothing_left(LLMEngine& engine) {
    std::vector<RequestOutput> none;
    CHECK(engine.step(none).ok());
    const BlockSpaceManager& target = engine.scheduler().blocks();
    EXPECT_EQ(target.num_available_device_blocks(), target.num_device_blocks());
  }

  static void expect_all_right(const LLMEngine& engine, int64_t least) {
    const DraftStats drafts = engine.stats().drafts;
    EXPECT_GE(drafts.num_draft_tokens, least);
    EXPECT_EQ(drafts.num_accepted_tokens, drafts.num_draft_tokens) << "a model knows what it will say";
  }
};

TEST_P(ModelDrafts, ChangeNoBitOfAnAnswer) {
  const Circumstances setup{.name = "plenty", .max_num_batched_tokens = 64};
  const Answers want = run(*make_engine(setup));
  for (const bool shares_encoder : {false, true}) {
    const std::unique_ptr<LLMEngine> engine = make_drafted(setup, {.shares_encoder = shares_encoder});
    const Answers got = run(*engine);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [id, answer] : want) EXPECT_TRUE(got.at(id) == answer) << "request " << id;
    EXPECT_GT(engine->stats().drafts.num_accepted_tokens, 8);
    expect_nothing_left(*engine);
  }
}

TEST_P(ModelDrafts, AModelIsRightAboutItself) {
  for (const bool shares_encoder : {false, true}) {
    for (const bool caches : {false, true}) {
      SCOPED_TRACE(str_cat("shares_encoder ", shares_encoder, ", caches ", caches));
      const Circumstances setup{.name = "plenty", .max_num_batched_tokens = 64};
      const std::unique_ptr<LLMEngine> engine =
          make_drafted(setup, {.shares_encoder = shares_encoder, .caches = caches});
      add_greedy(*engine, 7);
      const Answers answers = finish(*engine);
      expect_all_right(*engine, 5);
      int64_t num_tokens = 0;
      for (const auto& [id, answer] : answers) num_tokens += std::ssize(answer.ids.at(0)) + 3;  // and the prompt
      EXPECT_LT(engine->model_drafter()->num_fed_tokens(), num_tokens) << "a token is fed once";
      const ExecutorStats target = engine->executor_stats(), draft = engine->model_drafter()->executor().stats();
      EXPECT_EQ(draft.num_encoder_runs > 0, !shares_encoder);
      EXPECT_LE(draft.num_encoder_runs, target.num_encoder_runs);
      EXPECT_LE(draft.num_cross_kv_writes, target.num_cross_kv_writes) << "once for each input";
      EXPECT_EQ(draft.num_arena_overflows, 0);
      expect_nothing_left(*engine);
    }
  }
}

// Each of them has a state of its own, over one cross table.
TEST_P(ModelDrafts, SeveralAnswersAreFollowedOneByOne) {
  const Circumstances setup{.name = "plenty", .max_num_batched_tokens = 64};
  const auto add = [&](LLMEngine& engine) {
    const ModelSpec& spec = engine.executor().info().spec;
    SamplingParams params;
    EncoderDecoderInputs inputs = inputs_of(spec, 1);
    params.max_tokens = std::min(12, spec.max_decoder_positions - 3);
    params.n = 3;
    params.temperature = 0.02f;
    params.seed = 7;
    CHECK(engine.add_request("n", std::move(inputs), params).ok());
  };
  const std::unique_ptr<LLMEngine> bare = make_engine(setup);
  add(*bare);
  const Answers want = finish(*bare);
  for (const bool shares_encoder : {false, true}) {
    const std::unique_ptr<LLMEngine> engine = make_drafted(setup, {.shares_encoder = shares_encoder});
    add(*engine);
    EXPECT_EQ(finish(*engine), want);
    EXPECT_GT(engine->stats().drafts.num_accepted_tokens, 2);
    EXPECT_EQ(engine->model_drafter()->executor().stats().num_cross_kv_writes, 1);
    expect_nothing_left(*engine);
  }
}

// Of the next token of a request that runs; else 0.
int32_t place_in(const LLMEngine& engine, std::string_view request_id) {
  for (const SequenceGroup* group : engine.scheduler().running()) {
    if (group->request_id() == request_id) return group->seqs().front()->num_output_tokens();
  }
  return 0;
}

// Of a request, if its answer is among them.
void expect_tokens(const std::vector<RequestOutput>& outputs, std::string_view request_id,
                   const std::vector<int32_t>& wanted) {
  for (const RequestOutput& output : outputs) {
    if (output.request_id != request_id) continue;
    EXPECT_EQ(output.outputs.at(0).token_ids, wanted);
  }
}

// A sampled answer of the bare engine.
struct KnownAnswer {
  SamplingParams params;
  CompletionOutput output;

  bool is_best(int32_t place) const {
    const auto i = static_cast<size_t>(place);
    return std::ranges::find(output.logprobs->at(i), 1, &TokenLogprob::rank)->token_id == output.token_ids[i];
  }
  // Of the drafts of `most` tokens from a place on.
  int32_t num_right(int32_t place, int32_t most) const {
    int32_t right = 0;
    while (right < most && is_best(place + right)) ++right;
    return right;
  }
};

// Runs the request "r" of a known answer, step by step, and returns how many of its drafts were rejected.
// add_prompt(i): before step i.
int64_t expect_known_drafts(LLMEngine& engine, const KnownAnswer& known,
                            const std::function<void(int32_t)>& add_prompt) {
  constexpr int32_t kMost = 4;  // of make_drafted()
  int64_t num_rejected = 0;
  std::vector<RequestOutput> outputs;
  for (int32_t i = 0; engine.has_unfinished_requests(); ++i) {
    add_prompt(i);
    const int32_t place = place_in(engine, "r");
    const EngineStats before = engine.stats();
    outputs.clear();
    CHECK(engine.step(outputs).ok());
    expect_tokens(outputs, "r", known.output.token_ids);
    const EngineStats after = engine.stats();
    const bool may_draft = place > 0 && after.num_prompt_tokens == before.num_prompt_tokens;
    const int32_t most = may_draft ? std::min(kMost, known.params.max_tokens - place - 1) : 0;
    const int32_t right = known.num_right(place, most);
    EXPECT_EQ(after.drafts.num_draft_tokens - before.drafts.num_draft_tokens, most) << "place " << place;
    EXPECT_EQ(after.drafts.num_accepted_tokens - before.drafts.num_accepted_tokens, right) << "place " << place;
    num_rejected += most - right;
  }
  return num_rejected;
}

// A sampled answer leaves the drafts again and again. What is accepted then is known: a draft is the best token after
// tokens that are the answer's, and the bare engine lists the best token of each place. With other requests' prompts
// between, several tokens come that were not drafted, behind others that were wrong.
TEST_P(ModelDrafts, WhatWasRejectedIsForgotten) {
  const Circumstances setup{.name = "plenty", .max_num_batched_tokens = 64};
  int64_t num_rejected = 0;
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    if (kSanitized && seed > 2) break;
    KnownAnswer known;
    const auto add = [&](LLMEngine& engine, const std::string& id, int32_t most) {
      const ModelSpec& spec = engine.executor().info().spec;
      SamplingParams params = known.params;
      params.max_tokens = std::min(most, spec.max_decoder_positions - 3);
      CHECK(engine.add_request(id, inputs_of(spec, 2), params).ok());
      return params.max_tokens;
    };
    known.params.temperature = 1;
    known.params.top_k = 2;
    known.params.seed = seed;
    known.params.logprobs = 1;
    const std::unique_ptr<LLMEngine> bare = make_engine(setup);
    known.params.max_tokens = add(*bare, "r", 14);
    std::vector<RequestOutput> outputs;
    while (bare->has_unfinished_requests()) CHECK(bare->step(outputs).ok());
    known.output = outputs.at(0).outputs.at(0);
    for (const int32_t setting : {0, 1, 2, 3}) {
      const bool shares_encoder = setting % 2 == 1, has_prompts = setting >= 2;
      SCOPED_TRACE(str_cat("seed ", seed, ", shares_encoder ", shares_encoder, ", has_prompts ", has_prompts));
      const std::unique_ptr<LLMEngine> engine = make_drafted(setup, {.shares_encoder = shares_encoder});
      add(*engine, "r", 14);
      num_rejected += expect_known_drafts(*engine, known, [&](int32_t i) {
        if (has_prompts && i % 3 != 0) add(*engine, str_cat("prompt ", i), 1);
      });
    }
  }
  EXPECT_GT(num_rejected, 10) << "the answers left too few drafts";
}

TEST_P(ModelDrafts, ChangeNoBitBesidePreemptions) {
  Circumstances setup{.name = "swaps", .max_num_batched_tokens = 64};
  const std::unique_ptr<LLMEngine> wide = make_engine(setup);
  const ExecutorInfo& info = wide->executor().info();
  if (!info.spec.encoder_takes_ids()) return;
  testing::make_tight(info, setup);
  int64_t num_preemptions = 0;
  for (const PreemptionMode mode : {PreemptionMode::kSwap, PreemptionMode::kRecompute}) {
    for (const bool shares_encoder : {false, true}) {
      setup.preemption = mode;
      const std::unique_ptr<LLMEngine> bare = make_engine(setup);
      add_greedy(*bare, 7);
      const Answers want = finish(*bare);
      const std::unique_ptr<LLMEngine> engine = make_drafted(setup, {.shares_encoder = shares_encoder});
      add_greedy(*engine, 7);
      EXPECT_EQ(finish(*engine), want);
      expect_all_right(*engine, 5);
      num_preemptions += engine->stats().num_preemptions;
      expect_nothing_left(*engine);
    }
  }
  EXPECT_GT(num_preemptions, 0) << "the pool was too large for this test";
}

// Its own pool holds one or two of the sequences: the others have no drafts, and wait for none.
TEST_P(ModelDrafts, WhatHasNoRoomIsNotDrafted) {
  Circumstances setup{.name = "plenty", .max_num_batched_tokens = 64};
  const std::unique_ptr<LLMEngine> bare = make_engine(setup);
  const ExecutorInfo& info = bare->executor().info();
  add_greedy(*bare, 7);
  const Answers want = finish(*bare);
  const uint64_t block_bytes = kPool / static_cast<uint64_t>(info.num_device_blocks);
  uint64_t least = 1;
  for (const TableSpec& table : info.tables) {
    const int32_t longest = table.owner == TableOwner::kGroup ? info.max_encoder_len : info.max_decoder_len;
    least += static_cast<uint64_t>(ceil_div(longest, table.tokens_per_block));
  }
  for (const bool caches : {false, true}) {
    if (least * block_bytes > kPool) return;
    const std::unique_ptr<LLMEngine> engine = make_drafted(setup, {.pool = least * block_bytes, .caches = caches});
    add_greedy(*engine, 7);
    EXPECT_EQ(finish(*engine), want);
    expect_all_right(*engine, 1);
    EXPECT_EQ(engine->stats().num_preemptions, 0);
    expect_nothing_left(*engine);
  }
}

TEST_P(ModelDrafts, EndWithWhatIsAborted) {
  const Circumstances setup{.name = "plenty", .max_num_batched_tokens = 64};
  const std::unique_ptr<LLMEngine> engine = make_drafted(setup);
  add_greedy(*engine, 4);
  Answers answers;
  for (int32_t i = 0; i < 20 && engine->model_drafter()->num_sequences() == 0; ++i) step(*engine, answers);
  EXPECT_GT(engine->model_drafter()->num_sequences(), 0u);
  for (int32_t i = 0; i < 4; ++i) {
    if (!answers.contains(std::to_string(i))) {
      EXPECT_TRUE(engine->abort_request(std::to_string(i)).ok());
    }
  }
  add_greedy(*engine, 1, 4);
  step(*engine, answers);
  EXPECT_LE(engine->model_drafter()->num_sequences(), 1u);
  finish(*engine);
  expect_all_right(*engine, 1);
  expect_nothing_left(*engine);
}

// At an encode, and at a step of several sequences: the answers go on without drafts.
TEST_P(ModelDrafts, ABrokenModelDraftsNoMore) {
  const Circumstances setup{.name = "plenty", .max_num_batched_tokens = 64};
  const std::unique_ptr<LLMEngine> bare = make_engine(setup);
  add_greedy(*bare, 5);
  const Answers want = finish(*bare);
  for (const bool shares_encoder : {false, true}) {
    for (const int32_t num_steps : {0, 3, 7}) {
      const Drafting drafting{.shares_encoder = shares_encoder};
      DraftModel model = draft_model(setup, drafting);
      auto failing = std::make_unique<FailingExecutor>(std::move(model.executor), num_steps);
      const FailingExecutor& executor = *failing;
      model.executor = std::move(failing);
      const std::unique_ptr<LLMEngine> engine = make_drafted(setup, drafting, std::move(model));
      add_greedy(*engine, 5);
      EXPECT_EQ(finish(*engine), want);
      EXPECT_EQ(executor.num_calls_after(), 1) << "it is not asked again";
      EXPECT_EQ(engine->model_drafter()->num_sequences(), 0u);
      EXPECT_EQ(engine->model_drafter()->blocks().get_num_free_device_blocks(),
                engine->model_drafter()->blocks().num_device_blocks());
      expect_nothing_left(*engine);
    }
  }
}

// For measurements: the model runs, and the truth replaces what it says.
TEST_P(ModelDrafts, AnOracleReplacesThem) {
  const Circumstances setup{.name = "plenty", .max_num_batched_tokens = 64};
  const std::unique_ptr<LLMEngine> bare = make_engine(setup);
  add_greedy(*bare, 1);
  const Answers want = finish(*bare);
  for (const double truth : {0.0, 1.0}) {
    const std::unique_ptr<LLMEngine> engine = make_drafted(setup, {.truth = truth});
    add_greedy(*engine, 1);
    EXPECT_EQ(finish(*engine), want);
    EXPECT_EQ(engine->stats().drafts.num_drafts, 0) << "nothing is drafted without the truth";
    const ModelSpec& spec = engine->executor().info().spec;
    EncoderDecoderInputs inputs = inputs_of(spec, 0);
    SamplingParams params;
    const auto num_prompt = static_cast<int32_t>(inputs.prompt_token_ids.size());
    params.max_tokens = std::min(12, spec.max_decoder_positions - num_prompt);
    params.draft_token_ids = want.at("0").ids.at(0);
    CHECK(engine->add_request("0", std::move(inputs), params).ok());
    EXPECT_EQ(finish(*engine), want);
    const DraftStats drafts = engine->stats().drafts;
    EXPECT_GT(drafts.num_draft_tokens, 0);
    EXPECT_EQ(drafts.num_accepted_tokens, truth > 0 ? drafts.num_draft_tokens : 0);
    EXPECT_GT(engine->model_drafter()->num_fed_tokens(), 0) << "the model drafts all the same";
  }
}

// Drafts of another model are wrong at times, or always; its vocabulary is the same.
TEST_P(ModelDrafts, AnotherModelGuesses) {
  const std::pair<std::string, std::string> pairs[] = {{"bart-float32", "bart-bfloat16-bare"},
                                                       {"bart-bfloat16-bare", "bart-float16-sharded"},
                                                       {"t5-float32", "t5-madlad-float16"}};
  const auto pair = std::ranges::find(pairs, GetParam(), &std::pair<std::string, std::string>::first);
  if (pair == std::end(pairs)) return;
  const Circumstances setup{.name = "plenty", .max_num_batched_tokens = 64};
  const Answers want = run(*make_engine(setup));
  const std::unique_ptr<LLMEngine> engine = make_drafted(setup, {.folder = pair->second});
  EXPECT_EQ(run(*engine), want);
  const DraftStats drafts = engine->stats().drafts;
  EXPECT_GT(drafts.num_draft_tokens, 20);
  EXPECT_LT(drafts.num_accepted_tokens, drafts.num_draft_tokens);
  expect_nothing_left(*engine);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, ModelDrafts, ::testing::ValuesIn(testing::in_turn(folders(), 0)),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace transept
